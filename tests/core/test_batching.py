"""Small writes share a commit; each caller hears of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from hublet.core.batching import GroupCommit
from hublet.core.database import Connection, Database, DatabaseUnavailable, UniqueViolation
from hublet.core.database.postgresql import PostgresDatabase
from patience import SOON_SECONDS
from scratch_database import notes_of, notes_table


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
