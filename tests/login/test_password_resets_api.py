"""A forgotten password: the link comes by mail, works once, and nobody learns who has an account."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.settings import emails
from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.limits import Limiter
from hublet.login import password_resets
from hublet.login.password_resets import ResetLimits
from login.login_pages import PASSWORD, a_person, log_in, notices_in
from mail_servers import MailServer, mail_server
from notifications.mailbox import set_mail
from people import a_user
from workers import drain

FORGOTTEN = "/forgot-password"
NEW = "another horse battery"


@pytest.fixture
async def mail(database: Database) -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        set_mail(database, smtp_url=server.url())
        yield server


def mails(server: MailServer) -> list[tuple[str, str]]:
    return [(str(each["To"]), str(each["Subject"])) for each in server.messages]


def link_in(server: MailServer) -> str:
    """Return the path of the link in the last mail."""
    text = server.messages[-1].get_body(("plain",)).get_content()  # type: ignore[union-attr]
    [path] = re.findall(r"http://hub\.test(/reset-password/\w{43})\n", text)
    return str(path)


async def ask(client: httpx2.AsyncClient, email: str) -> httpx2.Response:
    return await client.post(FORGOTTEN, data={"email": email})


async def choose(client: httpx2.AsyncClient, path: str, new: str = NEW) -> httpx2.Response:
    return await client.post(path, data={"new": new, "repeated": new})


async def test_a_link_from_the_mail_sets_another_password_once(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    await a_person(database, "ada", email="ada@example.com")
    await log_in(client)

    await ask(client, " ADA@example.com")
    await drain(database)
    path = link_in(mail)
    shown = await client.get(path)
    changed = await choose(client, path)
    again = await choose(client, path, "a third horse battery")
    await drain(database)

    assert "For the account <b>ada</b>" in shown.text
    assert (changed.status_code, changed.headers["location"]) == (303, "/login?changed=1")
    assert again.status_code == 404
    assert notices_in(again) == ["This link does not work any more. Ask for another one."]
    # All browsers are signed out, this one too.
    assert (await client.get("/settings/sessions")).status_code == 303
    assert (await log_in(client, password=PASSWORD)).status_code == 403
    assert (await log_in(client, password=NEW)).status_code == 303
    assert mails(mail) == [
        ("ADA@example.com", "A new password"),
        ("ada <ada@example.com>", "Your password was changed"),
    ]
    async with database.read() as conn:
        assert await conn.fetch_all("SELECT * FROM password_resets") == []


async def test_the_answer_is_the_same_for_every_address(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    await a_person(database, "ada", email="ada@example.com")
    disabled = await a_person(database, "bob", email="bob@example.com")
    unverified, directory = await a_person(database, "eve"), await a_user(database, "dan")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, disabled)
        await emails.add(conn, unverified, "eve@example.com")
        # Without a password: a directory manages it, or only an administrator sets one.
        await accounts.add_email(conn, directory, "dan@example.com", verified=True)
    await drain(database)
    mail.envelopes.clear()

    pages, queued = set(), set()
    for name in ("ada", "bob", "eve", "dan", "nobody", "not an address"):
        address = f"{name}@example.com"
        response = await ask(client, address)
        pages.add((response.status_code, response.text.replace(address, "ADDRESS")))
        async with database.read() as conn:
            queued.add(await conn.fetch_value("SELECT count(*) FROM tasks"))
        await drain(database)

    assert len(pages) == len(queued) == 1
    assert mails(mail) == [("ada@example.com", "A new password")]


async def test_an_address_that_was_added_later_counts_after_three_days(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    user = await a_person(database, "ada", email="ada@example.com")
    clock.move(timedelta(days=30))
    async with database.transaction() as conn:
        added = await emails.add(conn, user, "thief@example.com")
        await emails.verify(conn, added.id, address=added.address)
    await drain(database)

    await ask(client, "thief@example.com")
    await drain(database)
    told = [subject for to, subject in mails(mail) if to == "ada <ada@example.com>"]
    early = [subject for to, subject in mails(mail) if to == "thief@example.com"]
    clock.move(timedelta(days=3, seconds=1))
    await ask(client, "thief@example.com")
    await drain(database)

    assert told == ["thief@example.com is an address of your account now"]
    assert early == []
    assert mails(mail)[-1] == ("thief@example.com", "A new password")


async def test_a_link_ends_after_an_hour_with_a_newer_one_and_with_another_password(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_person(database)

    async def a_link() -> str:
        async with database.transaction() as conn:
            link = await password_resets.create_link(conn, user)
        return link.removeprefix("http://hub.test")

    replaced = await a_link()
    voided = await a_link()
    assert [(await client.get(each)).status_code for each in (replaced, voided)] == [404, 200]
    async with database.transaction() as conn:
        await accounts.set_password(conn, user, NEW)
    expired = await a_link()
    clock.move(timedelta(hours=1, seconds=1))

    for path in (replaced, voided, expired, "/reset-password/nothing"):
        assert (await choose(client, path)).status_code == 404
    assert (await log_in(client, password=NEW)).status_code == 303


async def test_a_weak_password_and_a_slip_leave_the_link_as_it_is(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_person(database)
    async with database.transaction() as conn:
        path = (await password_resets.create_link(conn, user)).removeprefix("http://hub.test")

    differ = await client.post(path, data={"new": NEW, "repeated": "other"})
    weak = await choose(client, path, "short")
    foreign = await client.post(
        path, data={"new": NEW, "repeated": NEW}, headers={"Sec-Fetch-Site": "cross-site"}
    )

    assert [each.status_code for each in (differ, weak, foreign)] == [422, 422, 403]
    assert notices_in(differ) == ["The new password and its repetition differ."]
    assert (await choose(client, path)).status_code == 303


def test_requests_are_limited_by_address_and_mails_by_mailbox(settings: Settings) -> None:
    limits = ResetLimits(Limiter(), settings, address="192.0.2.1")

    assert [limits.allows_mail(each) for each in ("a@b.c", "A@B.C", "a@b.c", "a@b.c", "d@b.c")] == [
        True, True, True, False, True,
    ]  # fmt: skip
    for _ in range(settings.login.resets_per_hour):
        limits.count()
    with pytest.raises(Exception, match="Too many requests"):
        limits.count()


async def test_without_a_mail_server_the_page_says_whom_to_ask(
    client: httpx2.AsyncClient, database: Database
) -> None:
    page = await client.get(FORGOTTEN)
    sent = await ask(client, "ada@example.com")

    assert "hublet user reset-link NAME" in page.text
    assert 'name="email"' not in page.text
    assert notices_in(sent) == notices_in(page)
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM tasks") == 0
