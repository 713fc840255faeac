"""Whether this hub can run jobs at all, asked before one is taken."""

import asyncio

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.jobs.errors import ImageNotFound, NoNetworkGroups, NoRunner
from hublet.jobs.overseeing.choosing import Choice, choose, image_map
from hublet.jobs.runners import sandbox
from hublet.jobs.runners.images import target_of
from hublet.jobs.runners.records import CannotRun, Inside, Usage

_AGAIN_SECONDS = 30.0


class Availability:
    """Remembers which runner there is; where none can be used it looks again now and then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._choice: Choice | None = None
        self._looked_at = 0.0
        self._looking = asyncio.Lock()

    async def check(self, image: str | None, *, is_in_group: bool) -> None:
        """Refuse a job that nothing here would run; without an image it runs a space.

        No transaction may be open: a runner is tried out. One that the settings name may work
        on another machine, where the workers are, so only its absence is held against it.
        """
        choice = await self._chosen()
        runner, is_auto = choice.runner, self._settings.jobs.runner == "auto"
        if runner is None or (is_auto and not choice.ability.usable):
            raise NoRunner(choice.ability.sentence)
        if is_in_group and choice.ability.usable and not choice.ability.network_groups:
            raise NoNetworkGroups(choice.ability.without_groups)
        if image and runner.name == sandbox.NAME:
            try:
                target_of(image_map(self._settings), image)
            except CannotRun:
                raise ImageNotFound(image) from None

    async def usage(self, runner: str, handle: str) -> Usage | None:
        """Return what an attempt uses now; None when it runs with something else."""
        chosen = (await self._chosen()).runner
        return await chosen.usage(handle) if chosen is not None and chosen.name == runner else None

    async def inside(self, runner: str, handle: str) -> Inside | None:
        """Return the way into an attempt; None when it does not run, or not on this machine."""
        chosen = (await self._chosen()).runner
        return await chosen.inside(handle) if chosen is not None and chosen.name == runner else None

    async def _chosen(self) -> Choice:
        async with self._looking:
            is_old = monotonic() >= self._looked_at + _AGAIN_SECONDS
            if self._choice is None or (is_old and not self._choice.ability.usable):
                self._choice = await choose(self._settings)
                self._looked_at = monotonic()
            return self._choice
