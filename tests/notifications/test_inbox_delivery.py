"""What comes into inboxes, and what leaves them."""

from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.notifications.inbox import service
from hublet.notifications.records import INBOXES_CHANNEL, Involvement
from notifications.inboxes import (
    MENTIONED,
    PARTICIPATING,
    WATCHED,
    an_item,
    deliver,
    kept_counts,
    rows_of,
    true_counts,
)
from patience import SOON_SECONDS
from people import a_user

THREAD = "a" * 24
PLACE = "b" * 24


async def two_users(database: Database) -> tuple[str, str]:
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")
    return ada.id, bob.id


async def version(database: Database, user_id: str) -> int:
    async with database.read() as conn:
        found: int = await conn.fetch_value(
            "SELECT version FROM inboxes WHERE user_id = $1", user_id
        )
    return found


async def read_all(database: Database, user_id: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE notifications SET read = TRUE WHERE user_id = $1", user_id)
        await conn.execute("UPDATE notification_counts SET unread = 0 WHERE user_id = $1", user_id)


async def test_an_item_comes_into_each_inbox_as_unread(database: Database) -> None:
    ada, bob = await two_users(database)

    item = an_item(THREAD, place_id=PLACE, event_id="e1")
    before = clock.micros()
    await deliver(database, item, {ada: WATCHED, bob: MENTIONED})

    (row,) = await rows_of(database, ada)
    assert before <= row["updated_at"] <= clock.micros()
    assert row == {
        "user_id": ada,
        "thread_id": THREAD,
        "type": "model",
        "place_id": PLACE,
        "involvement": WATCHED,
        "read": False,
        "updated_at": row["updated_at"],
        "event_id": "e1",
        "last_event_id": "e1",
    }
    assert await kept_counts(database) == {
        (ada, "model", WATCHED): (1, 1),
        (ada, PLACE, WATCHED): (1, 1),
        (bob, "model", MENTIONED): (1, 1),
        (bob, PLACE, MENTIONED): (1, 1),
    }


async def test_an_unread_item_keeps_leading_to_what_was_not_seen_first(database: Database) -> None:
    ada, _ = await two_users(database)
    for event in ("e1", "e2"):
        await deliver(database, an_item(THREAD, event_id=event), {ada: WATCHED})

    (row,) = await rows_of(database, ada)
    assert (row["event_id"], row["last_event_id"]) == ("e1", "e2")
    assert await kept_counts(database) == {(ada, "model", WATCHED): (1, 1)}


async def test_an_unread_item_that_leads_to_the_thread_itself_goes_on_so(
    database: Database,
) -> None:
    ada, _ = await two_users(database)
    for event in (None, "e2"):
        await deliver(database, an_item(THREAD, event_id=event), {ada: WATCHED})

    (row,) = await rows_of(database, ada)
    assert (row["event_id"], row["last_event_id"]) == (None, "e2")


async def test_a_read_item_comes_back_as_unread_with_the_new_event(database: Database) -> None:
    ada, _ = await two_users(database)
    await deliver(database, an_item(THREAD, event_id="e1"), {ada: WATCHED})
    await deliver(database, an_item(), {ada: WATCHED})
    await read_all(database, ada)

    await deliver(database, an_item(THREAD, event_id="e2"), {ada: WATCHED})

    first, other = await rows_of(database, ada)
    assert (first["thread_id"], first["read"], other["read"]) == (THREAD, False, True)
    assert (first["event_id"], first["last_event_id"]) == ("e2", "e2")
    assert await kept_counts(database) == {(ada, "model", WATCHED): (2, 1)}


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param(WATCHED, MENTIONED, MENTIONED, id="a mention is more than watching"),
        pytest.param(MENTIONED, PARTICIPATING, MENTIONED, id="a mention sticks"),
        pytest.param(PARTICIPATING, WATCHED, PARTICIPATING, id="who took part does not just watch"),
    ],
)
async def test_involvement_only_grows(
    database: Database, before: Involvement, after: Involvement, kept: Involvement
) -> None:
    ada, _ = await two_users(database)
    for involvement in (before, after):
        await deliver(database, an_item(THREAD, place_id=PLACE), {ada: involvement})

    assert [row["involvement"] for row in await rows_of(database, ada)] == [kept]
    assert await kept_counts(database) == {(ada, "model", kept): (1, 1), (ada, PLACE, kept): (1, 1)}


async def test_times_in_an_inbox_only_grow_whatever_the_clock_says(database: Database) -> None:
    ada, _ = await two_users(database)
    clock.move(timedelta(hours=1))
    await deliver(database, an_item("1" * 24), {ada: WATCHED})
    clock.reset()
    await deliver(database, an_item("2" * 24), {ada: WATCHED})
    await deliver(database, an_item("3" * 24), {ada: WATCHED})

    newest, middle, oldest = await rows_of(database, ada)
    assert [row["thread_id"][0] for row in (newest, middle, oldest)] == ["3", "2", "1"]
    assert middle["updated_at"] == oldest["updated_at"] + 1
    assert newest["updated_at"] == oldest["updated_at"] + 2


async def test_changes_that_are_no_arrival_leave_the_newest_time(database: Database) -> None:
    ada, _ = await two_users(database)
    await deliver(database, an_item(THREAD), {ada: WATCHED})
    (row,) = await rows_of(database, ada)
    async with database.transaction() as conn:
        await service.involve(conn, THREAD, ada, MENTIONED)
    async with database.read() as conn:
        newest = await conn.fetch_value("SELECT last_at FROM inboxes WHERE user_id = $1", ada)

    assert newest == row["updated_at"]


async def test_who_is_not_there_gets_nothing_and_stops_nobody(database: Database) -> None:
    ada, _ = await two_users(database)

    await deliver(database, an_item(THREAD), {"f" * 24: MENTIONED, ada: WATCHED})
    await deliver(database, an_item(), {})

    assert [row["thread_id"] for row in await rows_of(database, ada)] == [THREAD]
    assert await rows_of(database, "f" * 24) == []


async def test_every_change_makes_the_version_grow_and_wakes(database: Database) -> None:
    ada, bob = await two_users(database)
    with database.subscribe(INBOXES_CHANNEL) as rung:
        await deliver(database, an_item(THREAD), {ada: WATCHED, bob: WATCHED})
        assert await rung.wait(timeout=SOON_SECONDS)
        async with database.transaction() as conn:
            await service.involve(conn, THREAD, ada, MENTIONED)
        assert await rung.wait(timeout=SOON_SECONDS)
        async with database.transaction() as conn:
            await service.remove_thread(conn, thread_id=THREAD, user_ids=[ada])
        assert await rung.wait(timeout=SOON_SECONDS)

    assert (await version(database, ada), await version(database, bob)) == (3, 1)


async def test_to_involve_somebody_raises_what_is_there_and_touches_nothing_else(
    database: Database,
) -> None:
    ada, bob = await two_users(database)
    await deliver(database, an_item(THREAD, place_id=PLACE), {ada: WATCHED, bob: WATCHED})
    (before,) = await rows_of(database, ada)
    async with database.transaction() as conn:
        await service.involve(conn, THREAD, ada, MENTIONED)
        await service.involve(conn, THREAD, ada, PARTICIPATING)
        await service.involve(conn, "c" * 24, ada, MENTIONED)

    assert await rows_of(database, ada) == [before | {"involvement": MENTIONED}]
    assert await kept_counts(database) == await true_counts(database)


async def test_a_thread_leaves_the_inboxes_that_are_named(database: Database) -> None:
    ada, bob = await two_users(database)
    await deliver(database, an_item(THREAD, place_id=PLACE), {ada: WATCHED, bob: WATCHED})
    other = an_item(place_id=PLACE)
    await deliver(database, other, {ada: WATCHED})
    async with database.transaction() as conn:
        await service.remove_thread(conn, thread_id=THREAD, user_ids=[ada])
        await service.remove_thread(conn, thread_id=THREAD, user_ids=[])

    assert [row["thread_id"] for row in await rows_of(database, ada)] == [other.thread_id]
    assert [row["thread_id"] for row in await rows_of(database, bob)] == [THREAD]
    assert await kept_counts(database) == await true_counts(database)


async def test_a_place_leaves_the_inboxes_that_are_named_and_its_counts_are_forgotten(
    database: Database,
) -> None:
    ada, bob = await two_users(database)
    for involvement in (WATCHED, MENTIONED):
        await deliver(database, an_item(place_id=PLACE), {ada: involvement, bob: WATCHED})
    other = an_item(type="paper")
    await deliver(database, other, {ada: WATCHED})
    async with database.transaction() as conn:
        await service.remove_place(conn, PLACE, user_ids=[ada])

    assert [row["thread_id"] for row in await rows_of(database, ada)] == [other.thread_id]
    assert await kept_counts(database) == {
        (ada, "paper", WATCHED): (1, 1),
        (bob, "model", WATCHED): (2, 2),
        (bob, PLACE, WATCHED): (2, 2),
    }


async def test_who_has_a_thread_or_a_place_is_told_in_the_order_of_ids(database: Database) -> None:
    users = sorted([(await a_user(database, name)).id for name in ("ada", "bob", "cleo")])
    await deliver(database, an_item(THREAD, place_id=PLACE), dict.fromkeys(users, WATCHED))
    await deliver(database, an_item(place_id=PLACE), {users[0]: MENTIONED})
    async with database.transaction() as conn:
        await service.remove_thread(conn, thread_id=THREAD, user_ids=[users[1]])
    async with database.read() as conn:
        with_thread = await service.list_users_with(conn, thread_id=THREAD, after="", limit=9)
        with_place = await service.list_users_with(conn, place_id=PLACE, after="", limit=1)
        others = await service.list_users_with(conn, place_id=PLACE, after=users[0], limit=9)

    assert with_thread == [users[0], users[2]]
    assert with_place == [users[0]]
    assert others == [users[2]]
