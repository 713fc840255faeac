"""Events are published with their change and become one task per reaction."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import pytest

from hublet.core import outbox, queue
from hublet.core.database import Connection, Database
from hublet.core.outbox import Event, publish, reacts_to
from registries import restored_registries
from scratch_database import RollBack
from tasks import claim


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    with restored_registries():
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class _Knitted(Event):
    """Something was knitted."""

    kind = "test.knitted"
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unravelled(Event):
    """Something was not knitted any more."""

    kind = "test.unravelled"
    reason: str


@pytest.fixture(autouse=True)
def _events(_registrations: None) -> None:
    Event.catalogue |= {event.kind: event for event in (_Knitted, _Unravelled)}
    outbox.reactions.clear()


def reacting(*names: str) -> None:
    for name in names:

        async def react(_conn: Connection, _event: _Knitted) -> None: ...

        react.__name__ = name
        reacts_to(_Knitted)(react)


async def hand_on(database: Database, *, limit: int = 100) -> int:
    async with database.transaction() as conn:
        return await outbox.dispatch(conn, limit=limit)


async def is_waiting(database: Database) -> tuple[bool, int]:
    async with database.read() as conn:
        return await outbox.is_waiting(conn), await outbox.count_waiting(conn)


async def test_each_reaction_gets_a_task_with_the_event(database: Database) -> None:
    reacting("mend", "sell")
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=3))

    assert await is_waiting(database) == (True, 1)
    assert await hand_on(database) == 1

    tasks = await claim(database)
    assert [task.kind.rpartition(".")[2] for task in tasks] == ["mend", "sell"]
    assert [msgspec.json.decode(task.body) for task in tasks] == [{"rows": 3}] * 2
    assert await is_waiting(database) == (False, 0)
    assert await hand_on(database) == 0


async def test_a_reaction_gets_no_task_for_an_event_that_its_condition_leaves_out(
    database: Database,
) -> None:
    reacting("mend")

    async def sell(_conn: Connection, _event: _Knitted) -> None: ...

    reacts_to(_Knitted, when=lambda event: event.rows > 3)(sell)
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=3))
        await publish(conn, _Knitted(rows=4))

    assert await hand_on(database) == 2

    tasks = [(task.kind.rpartition(".")[2], task.body) for task in await claim(database)]
    assert sorted(tasks) == [("mend", '{"rows":3}'), ("mend", '{"rows":4}'), ("sell", '{"rows":4}')]


async def test_an_event_that_this_version_cannot_read_holds_up_no_other(database: Database) -> None:
    """As one of a version that is newer: its task fails, and is tried again, like any other."""

    async def sell(_conn: Connection, _event: _Knitted) -> None: ...

    reacts_to(_Knitted, when=lambda event: event.rows > 3)(sell)
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=5))
        await conn.execute("UPDATE outbox SET body = '{}'")
        await publish(conn, _Knitted(rows=5))

    assert await hand_on(database) == 2
    assert [task.body for task in await claim(database)] == ["{}", '{"rows":5}']


async def test_an_event_is_undone_with_the_change_it_tells_of(database: Database) -> None:
    with suppress(RollBack):
        async with database.transaction() as conn:
            await publish(conn, _Knitted(rows=3))
            raise RollBack

    assert await is_waiting(database) == (False, 0)


async def test_handing_on_that_is_undone_loses_nothing(database: Database) -> None:
    reacting("mend")
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=3))
    with suppress(RollBack):
        async with database.transaction() as conn:
            await outbox.dispatch(conn, limit=10)
            raise RollBack

    assert await is_waiting(database) == (True, 1)
    assert await claim(database) == []
    assert await hand_on(database) == 1


async def test_events_are_handed_on_in_the_order_they_were_published(database: Database) -> None:
    reacting("mend")
    async with database.transaction() as conn:
        for rows in range(7):
            await publish(conn, _Knitted(rows=rows))

    assert [await hand_on(database, limit=3) for _ in range(4)] == [3, 3, 1, 0]

    assert [msgspec.json.decode(task.body)["rows"] for task in await claim(database)] == [*range(7)]


async def test_an_event_to_which_nobody_reacts_is_done_with(database: Database) -> None:
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=3))

    assert await hand_on(database) == 1

    assert await is_waiting(database) == (False, 0)
    assert await claim(database) == []


async def test_an_event_of_another_version_waits_for_a_worker_that_knows_it(
    database: Database,
) -> None:
    reacting("mend")
    async with database.transaction() as conn:
        for event in (_Unravelled(reason="moths"), _Knitted(rows=3)):
            await publish(conn, event)
    del Event.catalogue["test.unravelled"]

    assert await hand_on(database, limit=1) == 1
    assert await hand_on(database, limit=1) == 0
    assert await is_waiting(database) == (False, 1)
    Event.catalogue["test.unravelled"] = _Unravelled
    assert await is_waiting(database) == (True, 1)
    assert await hand_on(database) == 1


async def test_one_function_may_react_to_several_kinds(database: Database) -> None:
    seen: list[Event] = []

    async def see(_conn: Connection, event: Event) -> None:
        seen.append(event)

    reacts_to(_Knitted)(see)
    reacts_to(_Unravelled)(see)
    async with database.transaction() as conn:
        await publish(conn, _Knitted(rows=3))
        await publish(conn, _Unravelled(reason="moths"))
        await outbox.dispatch(conn, limit=10)
        for task in await queue.claim(
            conn, worker="ada", slow=False, limit=10, lease=queue.retry_delay(1)
        ):
            handler = queue.handlers[task.kind]
            await handler.run(conn, queue.decode(handler, task.body))

    assert seen == [_Knitted(rows=3), _Unravelled(reason="moths")]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_workers_do_not_hand_on_the_same_event(database: Database) -> None:
    reacting("mend")
    async with database.transaction() as conn:
        for rows in range(6):
            await publish(conn, _Knitted(rows=rows))

    async with database.transaction() as first, database.transaction() as second:
        counts = (await outbox.dispatch(first, limit=4), await outbox.dispatch(second, limit=4))

    assert counts == (4, 2)
    assert len(await claim(database)) == 6


def test_two_events_cannot_have_one_kind() -> None:
    with pytest.raises(TypeError) as caught:

        class _Stolen(Event):
            kind = "test.knitted"

    assert str(caught.value) == "_Knitted has the kind test.knitted already."
    assert Event.catalogue["test.knitted"] is _Knitted
