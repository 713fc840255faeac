"""Tasks are added, claimed for a time, and kept: the table's side of the queue."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from hublet.core import clock, queue
from hublet.core.database import Database
from hublet.core.queue import NewTask, Task
from registries import restored_registries
from tasks import LEASE, SECOND, add, claim, claimed, fail, finish, next_due, waiting


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    with restored_registries():
        yield


async def test_a_claimed_task_is_told_whole(database: Database) -> None:
    await add(database, "a", body='{"rows": 3}')

    assert await claim(database) == [
        Task(id="a", kind="knit", body='{"rows": 3}', attempts=1, claimed_by="ada")
    ]


async def test_what_is_due_longest_is_claimed_first(database: Database) -> None:
    await add(database, "later", delay=timedelta(seconds=-1))
    await add(database, "sooner", delay=timedelta(seconds=-2))
    await add(database, "not yet", delay=timedelta(seconds=60))

    assert await claimed(database, limit=1) == ["sooner"]
    assert await claimed(database, limit=1) == ["later"]
    assert await claimed(database, limit=1) == []


async def test_of_those_due_together_the_older_comes_first(database: Database) -> None:
    await add(database, "c", "a", "b", delay=-SECOND)
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET due_at = 0")

    assert await claimed(database, limit=2) == ["a", "b"]
    assert await claimed(database) == ["c"]


async def test_a_claim_takes_no_more_than_it_asked_for_and_nothing_twice(
    database: Database,
) -> None:
    await add(database, *(f"t{number:02}" for number in range(25)))

    first = await claimed(database, "ada", limit=10)
    second = await claimed(database, "bob", limit=10)
    third = await claimed(database, "ada", limit=10)

    assert [len(first), len(second), len(third)] == [10, 10, 5]
    assert sorted(first + second + third) == [f"t{number:02}" for number in range(25)]


async def test_a_daily_task_is_added_once_for_the_day_on_which_it_is_due(
    database: Database,
) -> None:
    today = clock.now().date()
    for delay in (timedelta(), timedelta(), timedelta(days=1)):
        async with database.transaction() as conn:
            await queue.add_daily(conn, "knit", delay=delay)

    async with database.read() as conn:
        tasks = await conn.fetch_all("SELECT id, kind, body FROM tasks ORDER BY id")
    assert [tuple(row.values()) for row in map(dict, tasks)] == [
        (f"knit.{day.isoformat()}", "knit", "{}") for day in (today, today + timedelta(days=1))
    ]


async def test_slow_and_quick_tasks_are_two_lanes(database: Database) -> None:
    @queue.handles_slowly("sail")
    async def sail(_database: Database, _body: dict[str, Any]) -> None: ...

    await add(database, "slow", kind="sail")
    await add(database, "quick")

    assert await claimed(database, slow=True) == ["slow"]
    assert await claimed(database, slow=False) == ["quick"]


async def test_a_lease_that_runs_out_makes_the_task_due_again(database: Database) -> None:
    await add(database, "a")
    (task,) = await claim(database, "ada", lease=-SECOND)

    (again,) = await claim(database, "bob")

    assert (again.id, again.attempts, again.claimed_by) == ("a", 2, "bob")
    assert await finish(database, task) is False
    assert await finish(database, again) is True
    assert await waiting(database) == (0, 0)


async def test_a_lease_that_is_extended_does_not_run_out(database: Database) -> None:
    await add(database, "a", "b")
    tasks = await claim(database, lease=-SECOND)

    async with database.transaction() as conn:
        lost = await queue.extend(conn, tasks, lease=LEASE)

    assert lost == []
    assert await claimed(database, "bob") == []


async def test_who_extends_a_lease_hears_what_was_lost(database: Database) -> None:
    await add(database, "a", "b", "c")
    tasks = await claim(database, "ada", lease=-SECOND)
    await claim(database, "bob", limit=1)
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM tasks WHERE id = 'b'")

        lost = await queue.extend(conn, tasks, lease=LEASE)

    assert sorted(task.id for task in lost) == ["a", "b"]
    assert await claimed(database, "bob") == []


async def test_a_claim_of_its_own_that_came_later_is_lost_too(database: Database) -> None:
    await add(database, "a")
    (before,) = await claim(database, "ada", lease=-SECOND)
    (after,) = await claim(database, "ada")

    async with database.transaction() as conn:
        assert await queue.extend(conn, [before], lease=LEASE) == [before]
        assert await queue.extend(conn, [after], lease=LEASE) == []
        assert await queue.extend(conn, [], lease=LEASE) == []


async def test_due_tasks_are_found_behind_many_parked_ones(database: Database) -> None:
    async with database.transaction() as conn:
        await queue.add_many(
            conn, [NewTask(kind="knit", body="{}", key=f"p{number:04}") for number in range(1000)]
        )
        await conn.execute("UPDATE tasks SET parked_at = 1, due_at = 1")
    await add(database, "z")

    assert await claimed(database, limit=1) == ["z"]
    assert await waiting(database) == (1, 1000)


async def test_a_key_is_added_once_while_its_task_exists(database: Database) -> None:
    await add(database, "a", body="1")
    await add(database, "a", body="2")
    (task,) = await claim(database)
    await add(database, "a", body="3")
    assert task.body == "1"
    assert await waiting(database) == (1, 0)

    await finish(database, task)
    await add(database, "a", body="4")

    assert [task.body for task in await claim(database)] == ["4"]


async def test_tasks_without_a_key_are_all_added(database: Database) -> None:
    async with database.transaction() as conn:
        await queue.add_many(conn, [NewTask(kind="knit", body="{}")] * 3)
        await queue.add_many(conn, [])

    assert await waiting(database) == (3, 0)


async def test_the_next_due_task_is_the_earliest_of_its_lane(database: Database) -> None:
    assert await next_due(database) is None
    now = clock.micros()
    await add(database, "soon", delay=timedelta(seconds=60))
    await add(database, "later", delay=timedelta(seconds=90))

    due = await next_due(database)

    assert due is not None
    assert round((due - now) / 1e6) == 60
    assert await next_due(database, slow=False) == due
    assert await next_due(database, slow=True) is None


async def test_a_claimed_task_is_due_when_its_lease_ends(database: Database) -> None:
    await add(database, "a")
    now = clock.micros()
    await claim(database)

    due = await next_due(database)

    assert due is not None
    assert round((due - now) / 1e6) == 30


@pytest.mark.parametrize("days", [400, -400])
async def test_a_moved_clock_ends_no_lease(database: Database, days: int) -> None:
    await add(database, "held", "waiting", delay=-SECOND)
    (task,) = await claim(database, "ada", limit=1)

    clock.move(timedelta(days=days))

    # Forward, what waits is due, and what is worked on still is not; back, nothing is due yet.
    assert await claimed(database, "bob") == (["waiting"] if days > 0 else [])
    due = await next_due(database)
    assert due is not None
    assert (due - clock.micros()) / 1e6 == pytest.approx(30, abs=5)
    assert await finish(database, task) is True


async def test_a_task_whose_worker_died_is_run_alone(database: Database) -> None:
    await add(database, "died", "failed", "fresh")
    died, failed = await claim(database, "ada", limit=2)
    await fail(database, failed)
    async with database.transaction() as conn:
        await queue.release_dead(conn, worker=died.claimed_by)
    clock.move(timedelta(seconds=5))

    async with database.read() as conn:
        assert await queue.is_suspect_due(conn)
    assert await claimed(database, suspects=False) == ["failed", "fresh"]
    assert await claimed(database, suspects=True) == ["died"]
    async with database.read() as conn:
        assert not await queue.is_suspect_due(conn)
