"""Proof that an e-mail address is its owner's."""

from datetime import timedelta
from typing import Any

import httpx2

from hublet.core import clock
from hublet.core.database import Database
from hublet.notifications.mail import links
from mail_servers import mail_server, texts_of
from notifications.mailbox import letters, link_in, set_mail, without_tokens
from people import Headers
from workers import drain

EMAILS = "/api/settings/emails"


async def add(client: httpx2.AsyncClient, headers: Headers, address: str) -> dict[str, Any]:
    response = await client.post(EMAILS, headers=headers, json={"email": address})
    assert response.status_code == 200
    email: dict[str, Any] = response.json()
    return email


async def is_verified(client: httpx2.AsyncClient, headers: Headers) -> list[bool]:
    return [each["isVerified"] for each in (await client.get(EMAILS, headers=headers)).json()]


async def link_to(client: httpx2.AsyncClient, database: Database, headers: Headers) -> str:
    await add(client, headers, "ada@example.com")
    await drain(database)
    (letter,) = letters(database)
    return link_in(texts_of(letter)[0])


async def test_a_new_address_gets_a_link(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    email = await add(client, ada, "ada@example.com")
    await drain(database)

    (letter,) = letters(database)
    text, html = texts_of(letter)
    assert (
        without_tokens(text)
        == """\
ada added ada@example.com to an account at http://hub.test.

If that is you, open this link within 7 days and press the button there:
http://hub.test/verify-email/TOKEN

If it is not, do nothing: no other mail comes to this address.
"""
    )
    assert link_in(text) in html
    assert letter["To"] == "ada@example.com"
    assert letter["Subject"] == "Is this your address?"
    assert str(letter["Message-ID"]).startswith(f"<verify.{email['id']}.")
    assert letter["List-Unsubscribe"] is None


async def test_looking_at_the_link_verifies_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    response = await client.get(await link_to(client, database, ada))

    assert response.status_code == 200
    assert "<h1>Is this your address?</h1>" in response.text
    assert "ada@example.com was added to an account of this hub." in response.text
    assert ">Yes, it is mine</button>" in response.text
    assert await is_verified(client, ada) == [False]


async def test_the_button_verifies_and_may_be_pressed_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_to(client, database, ada)

    first, second = await client.post(link), await client.post(link)

    assert (first.status_code, second.status_code) == (200, 200)
    assert "Mails of this hub can come to ada@example.com." in first.text
    assert await is_verified(client, ada) == [True]


async def test_after_seven_days_the_link_is_too_old(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_to(client, database, ada)
    clock.move(timedelta(days=7, seconds=1))

    for method in ("GET", "POST"):
        response = await client.request(method, link)
        assert response.status_code == 404
        assert "This link is older than 7 days" in response.text
    assert await is_verified(client, ada) == [False]


async def test_within_seven_days_the_link_is_good(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_to(client, database, ada)
    clock.move(timedelta(days=6, hours=23))

    assert (await client.post(link)).status_code == 200
    assert await is_verified(client, ada) == [True]


async def test_the_link_is_for_this_address_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_to(client, database, ada)
    (email,) = (await client.get(EMAILS, headers=ada)).json()
    await client.delete(f"{EMAILS}/{email['id']}", headers=ada)
    other = await add(client, ada, "other@example.com")
    forged = links.verify_url(database.hub, email_id=other["id"], address="ada@example.com")

    for each in (link, forged.removeprefix("http://hub.test")):
        response = await client.post(each)
        assert response.status_code == 404
        assert "This address does not belong to the account any more." in response.text
    assert await is_verified(client, ada) == [False]


async def test_a_broken_link_says_so(client: httpx2.AsyncClient) -> None:
    for method in ("GET", "POST"):
        response = await client.request(method, "/verify-email/hello")
        assert response.status_code == 404
        assert "This link is not complete" in response.text


async def test_an_address_that_went_before_the_mail_gets_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    email = await add(client, ada, "ada@example.com")
    await client.delete(f"{EMAILS}/{email['id']}", headers=ada)

    await drain(database)

    assert letters(database) == []


async def test_nobody_makes_the_hub_write_to_many_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for number in range(links.MOST_A_DAY + 2):
        email = await add(client, ada, f"a{number}@example.com")
        await drain(database)
        await client.delete(f"{EMAILS}/{email['id']}", headers=ada)
    assert len(letters(database)) == links.MOST_A_DAY

    clock.move(timedelta(days=1, seconds=1))
    await add(client, ada, "tomorrow@example.com")
    await drain(database)
    assert len(letters(database)) == links.MOST_A_DAY + 1


async def test_the_link_comes_later_when_the_server_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with mail_server(answers={"RCPT": ["450 later"]}) as server:
        set_mail(database, smtp_url=server.url())
        await add(client, ada, "ada@example.com")
        await drain(database)
        assert server.envelopes == []
        clock.move(timedelta(seconds=5))
        await drain(database)

    assert [envelope.rcpt_tos for envelope in server.envelopes] == [["ada@example.com"]]


async def test_an_address_that_no_server_takes_is_not_tried_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with mail_server(answers={"RCPT": ["550 unknown"]}) as server:
        set_mail(database, smtp_url=server.url())
        await add(client, ada, "ada@example.com")
        await drain(database)
        clock.move(timedelta(hours=2))
        await drain(database)

    assert server.envelopes == []
