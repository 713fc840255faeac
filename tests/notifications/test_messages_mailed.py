"""Messages of the hub that really become mails."""

import httpx2

from hublet.core.database import Database
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.switches import PreferenceKey
from notifications.mailbox import set_mail, subjects, with_address
from people import a_token, a_user
from repositories import disable
from workers import drain


async def test_who_is_disabled_gets_the_mail_that_says_so(database: Database) -> None:
    set_mail(database)
    await with_address(database, "ada", "bob")
    bob = await a_user(database, "bob")
    async with database.transaction() as conn:
        await preferences.turn_off(conn, bob.id, PreferenceKey.locked_out)
    for name in ("ada", "bob"):
        await disable(database, name)
    await drain(database)

    assert subjects(database, "ada") == ["Your account was switched off"]
    assert subjects(database, "bob") == []


async def test_who_turned_off_the_mail_finds_a_reported_credential_in_the_inbox(
    client: httpx2.AsyncClient, database: Database
) -> None:
    set_mail(database)
    await with_address(database, "ada", "bob")
    bob = await a_user(database, "bob")
    async with database.transaction() as conn:
        await preferences.turn_off(conn, bob.id, PreferenceKey.secret_detected)
    values = [await a_token(database, name) for name in ("ada", "bob")]
    await client.post("/api/credentials/revoke", json={"credentials": values})
    await drain(database)

    assert subjects(database, "ada") == ["Your token called ada's token was revoked"]
    assert subjects(database, "bob") == []
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM notifications") == 2
