"""Messages of the hub, read in full."""

from datetime import timedelta

import httpx2

from hublet.core import clock
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.notifications.messages.service import notify, notify_in_inbox
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import MessageText
from hublet.tokens.records import TokenRole
from people import Headers, a_user, sign_in
from repositories import disable

PATH = "/api/notifications/messages"
TEXT = MessageText(kind="job-ended", title="It ended", body="Well.\n\nAnd <b>soon</b>.")


async def ids_of(database: Database, name: str) -> list[str]:
    user = await a_user(database, name)
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id FROM messages WHERE user_id = $1 ORDER BY id", user.id
        )
    return [row["id"] for row in rows]


async def say(database: Database, *names: str, text: MessageText = TEXT) -> None:
    user_ids = [(await a_user(database, name)).id for name in names]
    async with database.transaction() as conn:
        await notify(conn, user_ids, text, key=PreferenceKey.job_status)


async def test_a_message_is_shown_in_full(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await say(database, "ada")
    (message_id,) = await ids_of(database, "ada")
    async with database.read() as conn:
        created_at = await conn.fetch_value("SELECT created_at FROM messages")

    response = await client.get(f"{PATH}/{message_id}", headers=ada)

    assert (response.status_code, response.json()) == (
        200,
        {
            "id": message_id,
            "kind": "job-ended",
            "title": "It ended",
            "body": "Well.\n\nAnd <b>soon</b>.",
            "createdAt": wire(created_at),
        },
    )


async def test_everybody_has_a_message_of_their_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await say(database, "ada", "bob")
    (message_id,) = await ids_of(database, "ada")

    response = await client.get(f"{PATH}/{message_id}", headers=bob)

    assert await ids_of(database, "bob") != [message_id]
    assert (response.status_code, response.json()) == (
        404,
        {"error": f"There is no message {message_id} for you."},
    )


async def test_a_message_needs_a_full_token(client: httpx2.AsyncClient, database: Database) -> None:
    await say(database, "ada")
    (message_id,) = await ids_of(database, "ada")
    reader = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-repos"])

    answers = [
        (await client.get(f"{PATH}/{message_id}", headers=headers)).status_code
        for headers in (reader, scoped, {})
    ]
    assert answers == [200, 403, 401]


async def test_who_cannot_read_is_not_told(database: Database) -> None:
    await a_user(database, "bob")
    await disable(database, "bob")
    await say(database, "ada", "bob")

    assert (len(await ids_of(database, "ada")), len(await ids_of(database, "bob"))) == (1, 0)


async def test_the_same_is_not_said_again_within_a_time(database: Database) -> None:
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")
    hour = timedelta(hours=1)
    other = MessageText(kind=TEXT.kind, title="Another", body=TEXT.body)

    async def say_once(text: MessageText, *user_ids: str) -> None:
        async with database.transaction() as conn:
            await notify_in_inbox(conn, user_ids, text, not_again_within=hour)

    await say_once(TEXT, ada.id)
    await say_once(TEXT, ada.id, bob.id)
    await say_once(other, ada.id)
    before = len(await ids_of(database, "ada")), len(await ids_of(database, "bob"))
    clock.move(hour + timedelta(seconds=1))
    await say_once(TEXT, ada.id)

    assert before == (2, 1)
    assert len(await ids_of(database, "ada")) == 3
