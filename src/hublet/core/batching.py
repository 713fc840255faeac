"""Group commit: the small writes of many callers share one transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.retries import is_being_cancelled

T = TypeVar("T")

_LARGEST_GROUP = 200

_Waiting = tuple[Callable[[Connection], Awaitable[Any]], "asyncio.Future[Any]"]


class GroupCommit:
    """Runs writes in the order they came, each in a savepoint, many to a commit.

    While one group is being committed the next one gathers, so that an fsync is paid
    per group and not per write. A caller hears back only after the commit; one that is
    cancelled before does not learn whether its write was kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, outcome))
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._drain(), name="group-commit")
        return await outcome

    async def settled(self) -> None:
        """Wait until nothing is being written."""
        if self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner])

    async def _drain(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._waiting:
                group = self._waiting[:_LARGEST_GROUP]
                self._waiting = self._waiting[_LARGEST_GROUP:]
                for (_, outcome), result in zip(group, await self._commit(group), strict=True):
                    _settle(outcome, result)
        finally:
            # Only when this is cancelled are callers left, which would wait for ever.
            left, self._waiting = [*group, *self._waiting], []
            for _, outcome in left:
                _settle(outcome, DatabaseUnavailable("the group commit was cancelled"))

    async def _commit(self, group: list[_Waiting]) -> list[Any]:
        try:
            async with self._database.transaction() as conn:
                return [await _attempt(conn, *each) for each in group]
        except Exception as error:  # noqa: BLE001 - every caller of the group must hear of it
            return [error] * len(group)


async def _attempt(
    conn: Connection,
    work: Callable[[Connection], Awaitable[Any]],
    outcome: asyncio.Future[Any],
) -> Any:
    """Return the result, or the error: one caller's failure must not undo the others' writes."""
    if outcome.done():
        return None  # The caller was cancelled before its turn came.
    try:
        async with conn.savepoint():
            return await work(conn)
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return error
    except Exception as error:  # noqa: BLE001 - handed to the one caller it belongs to
        return error


def _settle(outcome: asyncio.Future[Any], result: Any) -> None:
    if outcome.done():
        return
    if isinstance(result, asyncio.CancelledError):
        outcome.cancel()
    elif isinstance(result, Exception):
        outcome.set_exception(result)
    else:
        outcome.set_result(result)
