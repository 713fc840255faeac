"""Group commit: the small writes of many callers share one transaction, and where their work is the same,
each statement of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import copy_context
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from hublet.core.clock import monotonic
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.retries import is_being_cancelled

T = TypeVar("T")
Request = TypeVar("Request")
Result = TypeVar("Result")

_LARGEST_GROUP = 200
# Statements of SQLite run on the event loop: others get their turn after so long.
_YIELD_SECONDS = 0.005
# A bulk holds up the loop of a hub on SQLite until it is ready to be committed.
_LARGEST_BULK = 64

_Waiting = tuple[Callable[[Connection], Awaitable[Any]], "asyncio.Future[Any]"]


class GroupCommit:
    """Runs writes in the order they came, each in a savepoint, many to a commit.

    While one group is being committed the next one gathers, so that an fsync is paid
    per group and not per write. A caller hears back only after the commit; one that is
    cancelled before does not learn whether its write was kept.
    """

    def __init__(self, database: Database) -> None:
        # Whoever waits for a write has the database; `_groups` must not keep those that nobody has.
        self._database = ref(database)
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
        database = self._database()
        if database is None:
            return [DatabaseUnavailable("the database is closed")] * len(group)
        try:
            async with database.transaction() as conn:
                return await _attempt_all(conn, group)
        except Exception as error:  # noqa: BLE001 - every caller of the group must hear of it
            return [error] * len(group)


async def _attempt_all(conn: Connection, group: list[_Waiting]) -> list[Any]:
    results, resumed_at = [], monotonic()
    for each in group:
        results.append(await _attempt(conn, *each))
        if monotonic() > resumed_at + _YIELD_SECONDS:
            await asyncio.sleep(0)
            resumed_at = monotonic()
    return results


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


# One for each open database of this process.
_groups: WeakKeyDictionary[Database, GroupCommit] = WeakKeyDictionary()


async def write_in_group(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Run a write in a transaction and return after the commit; on SQLite others share the commit.

    There writers come one by one, and an fsync for each would be what they wait for. PostgreSQL
    gathers the commits of its sessions itself.
    """
    if database.kind != "sqlite":
        async with database.transaction() as conn:
            return await work(conn)
    group = _groups.setdefault(database, GroupCommit(database))
    return await group.run(_in_context_of_caller(work))


def _in_context_of_caller(
    work: Callable[[Connection], Awaitable[T]],
) -> Callable[[Connection], Awaitable[T]]:
    """What the write causes belongs to who asked for it: the trace, and the address in its links."""
    context = copy_context()

    async def run(conn: Connection) -> T:
        return await work(conn)

    return lambda conn: asyncio.create_task(run(conn), context=context)


# Does one kind of work for several requests at once: a result for each, or an error for it alone.
BulkWork = Callable[[Connection, Sequence[Request]], Awaitable[Sequence[Result | Exception]]]


class _Queued(NamedTuple):
    request: Any
    key: Hashable
    outcome: asyncio.Future[Any]


class BulkCommit(Generic[Request, Result]):
    """Does one kind of work for all callers that wait for it: one transaction, few statements.

    While some are served the next ones gather, so the more callers there are, the less each of them
    costs. Requests with the same key are served one after the other: inside a bulk they would not see
    what the other one writes. An error that is not one caller's own undoes the bulk; then each request
    is served by itself. A caller that is cancelled before does not learn whether its write was kept.
    """

    def __init__(
        self, database: Database, work: BulkWork[Request, Result], *, at_once: int
    ) -> None:
        self._database = database
        self._work = work
        self._at_once = at_once
        self._waiting: list[_Queued] = []
        # Keys of those that are served right now.
        self._served: set[Hashable] = set()
        self._runners: set[asyncio.Task[Any] | None] = set()

    async def run(self, request: Request, *, key: Hashable) -> Result:
        outcome: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Queued(request, key, outcome))
        if len(self._runners) < self._at_once:
            self._runners.add(asyncio.create_task(self._drain(), name="bulk-commit"))
        return await outcome

    async def _drain(self) -> None:
        bulk: list[_Queued] = []
        try:
            while bulk := self._take():
                results = await self._commit(bulk)
                self._served.difference_update(each.key for each in bulk)
                for each, result in zip(bulk, results, strict=True):
                    _settle(each.outcome, result)
        except BaseException:
            self._served.difference_update(each.key for each in bulk)
            # As above.
            left, self._waiting = [*bulk, *self._waiting], []
            for each in left:
                _settle(each.outcome, DatabaseUnavailable("the bulk commit was cancelled"))
            raise
        finally:
            # Right here: who comes once nothing waits needs another runner. Those left, if any, have
            # the key of one whom another runner serves, and that runner looks once more.
            self._runners.discard(asyncio.current_task())

    def _take(self) -> list[_Queued]:
        """Take those that waited longest, one of each key that is not served right now.

        Who was cancelled meanwhile is dropped.
        """
        bulk: dict[Hashable, _Queued] = {}
        left: list[_Queued] = []
        for each in self._waiting:
            if each.key in bulk or each.key in self._served or len(bulk) == _LARGEST_BULK:
                left.append(each)
            elif not each.outcome.done():
                bulk[each.key] = each
        self._waiting = left
        self._served.update(bulk)
        return list(bulk.values())

    async def _commit(self, bulk: list[_Queued]) -> Sequence[Any]:
        try:
            async with self._database.transaction() as conn:
                return await self._work(conn, [each.request for each in bulk])
        except DatabaseUnavailable as error:
            # Some of the kind leave it open whether the commit was kept.
            return [error] * len(bulk)
        except Exception as error:  # noqa: BLE001 - every caller of the bulk must hear of it
            if len(bulk) == 1:
                return [error]
        return [(await self._commit([each]))[0] for each in bulk]
