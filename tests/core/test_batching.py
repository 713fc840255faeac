"""Small writes share a commit; each caller hears of its own."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from weakref import ref

import pytest

from hublet.core import batching
from hublet.core.batching import BulkCommit, GroupCommit, write_in_group
from hublet.core.config import load
from hublet.core.database import (
    Connection,
    Database,
    DatabaseUnavailable,
    UniqueViolation,
    open_database,
)
from hublet.core.database.postgresql import PostgresDatabase
from patience import SOON_SECONDS
from scratch_database import hub_of, notes_of, notes_table


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> AsyncIterator[None]:
    async with notes_table(database):
        yield


@pytest.fixture
def group(database: Database) -> GroupCommit:
    return GroupCommit(database)


def adding(note_id: str) -> Callable[[Connection], Awaitable[int]]:
    async def add(conn: Connection) -> int:
        return await conn.execute("INSERT INTO notes (id) VALUES ($1)", note_id)

    return add


class Held:
    """A write that stays in its transaction until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, conn: Connection) -> None:
        await adding("held")(conn)
        self.begun.set()
        await self.let_go.wait()


async def test_every_caller_hears_its_own_result(database: Database, group: GroupCommit) -> None:
    counts = await asyncio.gather(*(group.run(adding(f"n{number}")) for number in range(5)))

    assert counts == [1, 1, 1, 1, 1]
    assert await notes_of(database) == ["n0", "n1", "n2", "n3", "n4"]


async def test_writes_that_come_together_share_a_transaction(
    database: Database, group: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    transaction = database.transaction

    def counted() -> object:
        nonlocal count
        count += 1
        return transaction()

    monkeypatch.setattr(database, "transaction", counted)

    await asyncio.gather(*(group.run(adding(f"n{number:03}")) for number in range(450)))

    assert count == 3
    assert len(await notes_of(database)) == 450


async def test_a_write_that_comes_later_waits_for_the_next_commit(
    database: Database, group: GroupCommit
) -> None:
    held = Held()
    first = asyncio.create_task(group.run(held))
    await held.begun.wait()
    second = asyncio.create_task(group.run(adding("later")))
    await asyncio.sleep(0.05)
    assert await notes_of(database) == []
    assert not second.done()

    held.let_go.set()
    await asyncio.gather(first, second)

    assert await notes_of(database) == ["held", "later"]


async def test_one_callers_failure_is_its_own(database: Database, group: GroupCommit) -> None:
    outcomes = await asyncio.gather(
        group.run(adding("a")),
        group.run(adding("a")),
        group.run(adding("b")),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [int, UniqueViolation, int]
    assert await notes_of(database) == ["a", "b"]


async def test_when_the_database_is_away_every_caller_hears_it_and_may_come_again(
    database: Database, group: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        if isinstance(database, PostgresDatabase):
            patch.setattr(database.pool, "acquire", refuse)
        else:
            patch.setattr(database, "begin", refuse)
        outcomes = await asyncio.gather(
            *(group.run(adding(f"n{number}")) for number in range(3)), return_exceptions=True
        )
    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3

    assert await group.run(adding("a")) == 1
    assert await notes_of(database) == ["a"]


async def test_a_caller_that_left_before_its_turn_writes_nothing(
    database: Database, group: GroupCommit
) -> None:
    held = Held()
    first = asyncio.create_task(group.run(held))
    await held.begun.wait()
    gone = asyncio.create_task(group.run(adding("gone")))
    stayed = asyncio.create_task(group.run(adding("stayed")))
    await asyncio.sleep(0)
    gone.cancel()
    held.let_go.set()
    await asyncio.gather(first, stayed)

    assert gone.cancelled()
    assert await notes_of(database) == ["held", "stayed"]


async def test_a_caller_that_leaves_during_the_commit_disturbs_nobody(
    database: Database, group: GroupCommit
) -> None:
    held = Held()
    leaving = asyncio.create_task(group.run(held))
    staying = asyncio.create_task(group.run(adding("stayed")))
    await held.begun.wait()
    leaving.cancel()
    held.let_go.set()

    assert await staying == 1
    assert leaving.cancelled()
    assert await notes_of(database) == ["held", "stayed"]


async def test_a_write_that_raises_a_cancellation_of_its_own_disturbs_nobody(
    database: Database, group: GroupCommit
) -> None:
    async def await_something_cancelled(conn: Connection) -> None:
        await adding("undone")(conn)
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled

    outcomes = await asyncio.gather(
        group.run(await_something_cancelled), group.run(adding("a")), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, int]
    assert await notes_of(database) == ["a"]


async def test_when_the_writing_is_cancelled_nobody_waits_for_ever(
    database: Database, group: GroupCommit
) -> None:
    held = Held()
    callers = [asyncio.create_task(group.run(work)) for work in (held, adding("same group"))]
    await held.begun.wait()
    callers.append(asyncio.create_task(group.run(adding("next group"))))
    await asyncio.sleep(0)
    (runner,) = (task for task in asyncio.all_tasks() if task.get_name() == "group-commit")
    runner.cancel()

    async with asyncio.timeout(SOON_SECONDS):
        outcomes = await asyncio.gather(*callers, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3
    assert await notes_of(database) == []
    assert await group.run(adding("a")) == 1


async def test_settled_waits_for_what_is_being_written(
    database: Database, group: GroupCommit
) -> None:
    await group.settled()
    writing = asyncio.create_task(group.run(adding("a")))
    await asyncio.sleep(0)
    writing.cancel()

    await group.settled()

    assert await notes_of(database) in ([], ["a"])
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "group-commit"]


async def test_only_sqlite_gathers_the_writes_of_many_requests_in_one_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, transaction = 0, database.transaction

    def counted() -> object:
        nonlocal count
        count += 1
        return transaction()

    monkeypatch.setattr(database, "transaction", counted)

    outcomes = await asyncio.gather(
        *(write_in_group(database, adding(name)) for name in ("a", "b", "a", "c")),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [int, int, UniqueViolation, int]
    assert await notes_of(database) == ["a", "b", "c"]
    assert count == (1 if database.kind == "sqlite" else 4)


async def test_nothing_is_kept_of_a_database_that_nobody_has_any_more(tmp_path: Path) -> None:
    settings = load({"database.data_dir": tmp_path}, environ={})
    async with open_database(hub_of(settings)) as database:
        await write_in_group(database, adding_nothing)
    forgotten = ref(database)
    del database
    # The task of the group ends.
    await asyncio.sleep(0)
    gc.collect()

    assert forgotten() is None


async def adding_nothing(conn: Connection) -> None:
    await conn.fetch_value("SELECT 1")


async def test_a_shared_write_runs_in_the_context_of_its_caller(database: Database) -> None:
    caller: ContextVar[str] = ContextVar("caller")

    async def ask(name: str) -> str:
        caller.set(name)

        async def write(conn: Connection) -> str:
            await adding(name)(conn)
            return caller.get()

        return await write_in_group(database, write)

    assert await asyncio.gather(ask("a"), ask("b")) == ["a", "b"]


async def test_a_large_group_lets_others_run_in_between(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_YIELD_SECONDS", 0.0)
    group, order = GroupCommit(database), []

    def noting(name: str) -> Callable[[Connection], Awaitable[None]]:
        async def write(conn: Connection) -> None:
            await adding(name)(conn)
            order.append(name)
            if name == "a":
                asyncio.get_running_loop().call_soon(order.append, "another request")

        return write

    await asyncio.gather(group.run(noting("a")), group.run(noting("b")))

    assert order == ["a", "another request", "b"]


class NotesRefused(Exception):
    pass


class Adding:
    """Adds notes in bulk; what comes in one bulk is noted, and one id cannot be added."""

    def __init__(self) -> None:
        self.bulks: list[list[str]] = []
        self.fails_at: str | None = None
        self.held: Held | None = None

    async def __call__(self, conn: Connection, ids: Sequence[str]) -> Sequence[str | NotesRefused]:
        self.bulks.append(list(ids))
        if self.held is not None:
            held, self.held = self.held, None
            await held(conn)
        refused = [each for each in ids if each.startswith("refused")]
        await conn.execute_many(
            "INSERT INTO notes (id) VALUES ($1)", [(each,) for each in ids if each not in refused]
        )
        if self.fails_at in ids:
            raise ValueError(self.fails_at)
        return [NotesRefused(each) if each in refused else f"added {each}" for each in ids]


@pytest.fixture
def work() -> Adding:
    return Adding()


@pytest.fixture(params=[1, 2], ids=["one at once", "two at once"])
def bulk(database: Database, work: Adding, request: pytest.FixtureRequest) -> BulkCommit[str, str]:
    if request.param == 2 and not isinstance(database, PostgresDatabase):
        pytest.skip("SQLite has one writer.")
    return BulkCommit(database, work, at_once=request.param)


async def test_those_who_wait_together_are_served_together(
    database: Database, work: Adding, bulk: BulkCommit[str, str]
) -> None:
    outcomes = await asyncio.gather(
        *(bulk.run(f"{number:03}", key=number) for number in range(150))
    )

    assert outcomes == [f"added {number:03}" for number in range(150)]
    assert [len(each) for each in work.bulks] == [64, 64, 22]
    assert len(await notes_of(database)) == 150


async def test_one_after_the_other_is_served_too(bulk: BulkCommit[str, str]) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        for number in range(20):
            # It comes in the very step in which the one before it has its answer.
            assert await bulk.run(f"{number}", key=number) == f"added {number}"


async def test_requests_with_one_key_do_not_share_a_transaction(
    work: Adding, bulk: BulkCommit[str, str]
) -> None:
    outcomes = await asyncio.gather(
        bulk.run("a", key="same"),
        bulk.run("b", key="same"),
        bulk.run("c", key="other"),
    )

    assert list(outcomes) == ["added a", "added b", "added c"]
    assert work.bulks == [["a", "c"], ["b"]]


async def test_requests_with_one_key_are_not_served_beside_each_other_either(
    database: Database, work: Adding
) -> None:
    if not isinstance(database, PostgresDatabase):
        pytest.skip("SQLite has one writer.")
    bulk = BulkCommit[str, str](database, work, at_once=2)
    work.held = held = Held()
    first = asyncio.create_task(bulk.run("a", key="same"))
    await held.begun.wait()
    second = asyncio.create_task(bulk.run("b", key="same"))
    await asyncio.sleep(0)
    async with asyncio.timeout(SOON_SECONDS):
        await bulk.run("c", key="other")
    assert work.bulks == [["a"], ["c"]]

    held.let_go.set()
    await asyncio.gather(first, second)

    assert work.bulks == [["a"], ["c"], ["b"]]


async def test_an_error_in_place_of_a_result_is_for_one_caller(
    database: Database, bulk: BulkCommit[str, str]
) -> None:
    outcomes = await asyncio.gather(
        *(bulk.run(each, key=each) for each in ("a", "refused", "b")), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [str, NotesRefused, str]
    assert await notes_of(database) == ["a", "b"]


async def test_a_failure_of_one_does_not_spoil_the_others(
    database: Database, work: Adding, bulk: BulkCommit[str, str]
) -> None:
    work.fails_at = "b"

    outcomes = await asyncio.gather(
        *(bulk.run(each, key=each) for each in ("a", "b", "c")), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [str, ValueError, str]
    assert work.bulks == [["a", "b", "c"], ["a"], ["b"], ["c"]]
    assert await notes_of(database) == ["a", "c"]


async def test_a_bulk_that_may_have_been_kept_is_not_done_again(
    work: Adding, bulk: BulkCommit[str, str], monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    transaction = database.transaction

    @asynccontextmanager
    async def lost() -> AsyncIterator[Connection]:
        async with transaction() as conn:
            yield conn
        raise DatabaseUnavailable("lost in the moment of the commit")

    with monkeypatch.context() as patch:
        patch.setattr(database, "transaction", lost)
        outcomes = await asyncio.gather(
            *(bulk.run(each, key=each) for each in ("a", "b")), return_exceptions=True
        )

    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 2
    assert work.bulks == [["a", "b"]]


async def test_who_left_before_the_bulk_began_is_not_in_it(
    database: Database, work: Adding
) -> None:
    bulk = BulkCommit[str, str](database, work, at_once=1)
    work.held = held = Held()
    first = asyncio.create_task(bulk.run("a", key="a"))
    await held.begun.wait()
    gone, stayed = (asyncio.create_task(bulk.run(each, key=each)) for each in ("b", "c"))
    await asyncio.sleep(0)
    gone.cancel()
    held.let_go.set()
    await asyncio.gather(first, stayed)

    assert work.bulks == [["a"], ["c"]]


async def test_when_the_bulk_is_cancelled_nobody_waits_for_ever(
    database: Database, work: Adding
) -> None:
    bulk = BulkCommit[str, str](database, work, at_once=1)
    work.held = held = Held()
    callers = [asyncio.create_task(bulk.run(each, key=each)) for each in ("a", "b")]
    await held.begun.wait()
    callers.append(asyncio.create_task(bulk.run("c", key="c")))
    await asyncio.sleep(0)
    (runner,) = (task for task in asyncio.all_tasks() if task.get_name() == "bulk-commit")
    runner.cancel()

    async with asyncio.timeout(SOON_SECONDS):
        outcomes = await asyncio.gather(*callers, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3
    assert await notes_of(database) == []
    assert await bulk.run("a", key="a") == "added a"
