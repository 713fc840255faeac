"""Tasks end: done, failed and retried, parked, handed back, taken over."""

from datetime import timedelta

import pytest

from hublet.core import clock, queue
from hublet.core.database import Database
from hublet.core.queue import ParkedTask
from tasks import SECOND, add, claim, claimed, fail, next_due, waiting


async def test_only_the_holder_ends_a_task(database: Database) -> None:
    await add(database, "a")
    (task,) = await claim(database, "ada", lease=-SECOND)
    await claim(database, "bob")

    await fail(database, task)
    async with database.transaction() as conn:
        await queue.release(conn, [task])
        await queue.move_to_lane(conn, task, slow=True)

    assert await claimed(database, "eve") == []
    assert await claimed(database, "eve", slow=True) == []


async def test_a_failed_task_waits_longer_each_time(database: Database) -> None:
    await add(database, "a")
    waits = []
    for _ in range(3):
        (task,) = await claim(database)
        before = clock.micros()
        await fail(database, task)
        due = await next_due(database)
        assert due is not None
        waits.append((due - before) / 1e6)
        clock.move(timedelta(seconds=10))

    assert [round(wait / 2**number) for number, wait in enumerate(waits)] == [1, 1, 1]
    assert waits == sorted(waits)


async def test_a_task_that_failed_too_often_is_parked_with_its_error(database: Database) -> None:
    await add(database, "a", "b")
    first, second = await claim(database)
    before = clock.micros()
    await fail(database, first, most=1)
    await fail(database, second, most=2)

    async with database.read() as conn:
        (parked,) = await queue.list_parked(conn)

    assert parked == ParkedTask(
        id="a", kind="knit", attempts=1, error="It tore.", parked_at=parked.parked_at
    )
    assert before <= parked.parked_at <= clock.micros()
    assert await waiting(database) == (1, 1)
    clock.move(timedelta(days=1))
    assert await claimed(database) == ["b"]


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        pytest.param("x" * 10_000, "x" * 500, id="a long story is cut"),
        pytest.param("a\x00b", "ab", id="zeros, which PostgreSQL refuses, are left out"),
        pytest.param("a\udcffb", "a?b", id="half a character is replaced"),
        pytest.param("", "", id="an error without words"),
    ],
)
async def test_every_error_can_be_written_down(database: Database, error: str, kept: str) -> None:
    await add(database, "a")
    (task,) = await claim(database)

    async with database.transaction() as conn:
        await queue.fail(conn, task, error=error, max_attempts=1)
        (parked,) = await queue.list_parked(conn)

    assert parked.error == kept


async def test_a_parked_task_gets_a_fresh_start(database: Database) -> None:
    await add(database, "a", "b", "c")
    for task in await claim(database):
        await fail(database, task, most=1)

    async with database.transaction() as conn:
        assert await queue.retry_parked(conn, task_id="b") == 1
        assert await queue.retry_parked(conn, task_id="unknown") == 0
    (task,) = await claim(database)
    async with database.transaction() as conn:
        assert await queue.retry_parked(conn) == 2

    assert (task.id, task.attempts) == ("b", 1)
    assert await claimed(database) == ["a", "c"]
    assert await waiting(database) == (3, 0)


async def test_what_is_handed_back_is_due_at_once_and_not_counted(database: Database) -> None:
    await add(database, "a", "b", "c")
    tasks = await claim(database)

    async with database.transaction() as conn:
        await queue.release(conn, tasks[:1])
        await queue.release(conn, tasks[1:2], counted=True)

    assert [(task.id, task.attempts) for task in await claim(database, "bob")] == [
        ("a", 1),
        ("b", 2),
    ]


async def test_a_worker_that_stops_hands_back_all_it_holds(database: Database) -> None:
    await add(database, "a", "b", "c")
    await claim(database, "ada", limit=2)
    await claim(database, "bob", limit=1)

    async with database.transaction() as conn:
        assert await queue.release_all(conn, worker="ada") == 2

    assert [(task.id, task.attempts) for task in await claim(database, "eve")] == [
        ("a", 1),
        ("b", 1),
    ]


async def test_what_a_dead_worker_held_is_due_at_once_and_counted(database: Database) -> None:
    await add(database, "a", "b")
    await claim(database, "ada", limit=1)
    await claim(database, "bob", limit=1)

    async with database.transaction() as conn:
        assert await queue.release_dead(conn, worker="ada") == 1

    assert [(task.id, task.attempts) for task in await claim(database, "eve")] == [("a", 2)]


@pytest.mark.parametrize(
    ("times", "counted"),
    [
        pytest.param(1, 1, id="beside a fresh one, anybody may have done it"),
        pytest.param(2, 0, id="beside a suspect that ran alone, they are innocent"),
    ],
)
async def test_slow_tasks_do_not_pay_for_a_quick_one_that_died_again(
    database: Database, times: int, counted: int
) -> None:
    await add(database, "quick", "slow")
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET slow = $1 WHERE id = 'slow'", True)
    for _ in range(times):
        await claim(database, "ada", slow=False, lease=-SECOND)
    await claim(database, "ada", slow=True)

    async with database.transaction() as conn:
        assert await queue.release_dead(conn, worker="ada") == 2

    assert [task.attempts for task in await claim(database, slow=False)] == [times + 1]
    assert [task.attempts for task in await claim(database, slow=True)] == [counted + 1]


async def test_a_task_in_the_wrong_lane_is_moved_and_not_counted(database: Database) -> None:
    await add(database, "a")
    (task,) = await claim(database, slow=False)

    async with database.transaction() as conn:
        await queue.move_to_lane(conn, task, slow=True)

    assert await claimed(database, slow=False) == []
    (moved,) = await claim(database, slow=True)
    assert (moved.id, moved.attempts) == ("a", 1)


async def test_a_task_that_broke_its_transaction_is_run_alone(database: Database) -> None:
    await add(database, "broke")
    (task,) = await claim(database)
    await fail(database, task, broke=True)
    clock.move(timedelta(seconds=5))

    assert await claimed(database, suspects=False) == []
    (task,) = await claim(database, suspects=True)
    await fail(database, task, most=1, broke=True)

    async with database.read() as conn:
        (parked,) = await queue.list_parked(conn)
    assert parked.error == "It broke the transaction it ran in: It tore."


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        pytest.param(1, 1, id="a second after the first attempt"),
        pytest.param(2, 2, id="twice as long after the second"),
        pytest.param(5, 16, id="and so on"),
        pytest.param(12, 2048, id="half an hour after the twelfth"),
        pytest.param(13, 3600, id="never more than an hour"),
        pytest.param(10_000, 3600, id="however often"),
    ],
)
def test_the_wait_doubles_up_to_an_hour(attempts: int, seconds: int) -> None:
    waits = [queue.retry_delay(attempts).total_seconds() for _ in range(200)]

    assert all(seconds * 0.9 <= wait <= seconds * 1.1 for wait in waits)
    assert len(set(waits)) > 10
