"""Stands where a runner would: jobs wait and say why, and can be canceled as ever."""

import asyncio
from collections.abc import AsyncIterator

from hublet.jobs.runners.records import (
    Ability,
    Inside,
    Observation,
    Order,
    Phase,
    TryLater,
    Usage,
)


class NoRunner:
    name = "none"

    def __init__(self, ability: Ability) -> None:
        self._ability = ability

    async def probe(self) -> Ability:
        return self._ability

    async def launch(self, order: Order) -> str:  # noqa: ARG002 - as every runner has it
        raise TryLater(self._ability.sentence)

    async def inspect(self, handle: str) -> Observation:  # noqa: ARG002 - as above
        # Whatever another runner began may well go on.
        return Observation(phase=Phase.unknown, reason=self._ability.sentence)

    async def watch(self) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        """Nothing can be done from here."""

    async def remove(self, handle: str) -> None:
        """Nothing can be done from here."""

    async def handles(self) -> list[str]:
        return []

    async def tidy_up(self) -> None:
        """Nothing can be done from here."""

    async def usage(self, handle: str) -> Usage | None:  # noqa: ARG002 - as above
        return None

    async def inside(self, handle: str) -> Inside | None:  # noqa: ARG002 - as above
        return None
