"""Mails of the hub and a mail server that is not always well."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.mail import MailUnavailable
from hublet.notifications.mail.sender import retry_delay
from hublet.notifications.messages import texts
from hublet.notifications.messages.service import notify
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import MessageText
from mail_servers import MailServer, mail_server, texts_of
from notifications.mailbox import (
    SIGNATURE,
    letters,
    link_in,
    recipients,
    set_mail,
    waiting,
    with_address,
    without_tokens,
)
from people import a_user
from repositories import disable
from workers import drain

SAID = MessageText(kind="test", title="The <engine> stopped", body="It is\n  out of steam & cold.")


async def say(
    database: Database, *names: str, key: PreferenceKey | None = PreferenceKey.job_status
) -> None:
    """Let the hub tell users something, each in a mail of its own."""
    ids = [(await a_user(database, name)).id for name in names]
    async with database.transaction() as conn:
        await notify(conn, ids, SAID, key=key)


def taken_by(server: MailServer) -> list[str]:
    return sorted(str(envelope.rcpt_tos[0]).partition("@")[0] for envelope in server.envelopes)


async def test_a_message_of_the_hub_is_mailed_at_once(database: Database) -> None:
    await with_address(database, "ada")

    await say(database, "ada")
    await drain(database)

    (letter,) = letters(database)
    text, html = texts_of(letter)
    assert letter["Subject"] == "The <engine> stopped"
    assert letter["References"] is None
    assert (
        without_tokens(text)
        == f"""\
The <engine> stopped

It is
  out of steam & cold.

{SIGNATURE}
You get this because it concerns your account.
Stop mails of this kind: http://hub.test/unsubscribe/TOKEN
Choose what you get: http://hub.test/settings/notifications
"""
    )
    assert "The &lt;engine&gt; stopped" in html
    assert '<div style="white-space: pre-wrap;">It is\n  out of steam &amp; cold.</div>' in html
    assert link_in(text) in html


async def test_what_cannot_be_turned_off_has_no_link_for_that(database: Database) -> None:
    await with_address(database, "ada")

    await say(database, "ada", key=None)
    await drain(database)

    (letter,) = letters(database)
    assert letter["List-Unsubscribe"] is None
    assert letter["List-Unsubscribe-Post"] is None
    assert (
        texts_of(letter)[0].partition(f"{SIGNATURE}\n")[2]
        == """\
You get this because it concerns your account.
Choose what you get: http://hub.test/settings/notifications
"""
    )
    assert "unsubscribe" not in texts_of(letter)[1]


async def test_somebody_disabled_hears_only_what_concerns_the_account_itself(
    database: Database,
) -> None:
    await with_address(database, "ada")
    for key in (PreferenceKey.job_status, None):
        await say(database, "ada", key=key)
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET due_at = due_at + 1000000")
    await disable(database, "ada")
    await drain(database)
    clock.move(timedelta(seconds=2))
    await drain(database)

    sent = {(str(each["Subject"]), each["List-Unsubscribe"] is None) for each in letters(database)}
    assert sent == {(SAID.title, True), (texts.account_disabled().title, False)}
    assert await waiting(database) == 0


async def test_a_mail_that_is_to_come_later_comes_later_and_once(database: Database) -> None:
    await with_address(database, "ada", "bob")

    async with mail_server(answers={"RCPT": ["450 greylisted"]}) as server:
        set_mail(database, smtp_url=server.url())
        await say(database, "ada")
        await drain(database)
        assert (taken_by(server), await waiting(database)) == ([], 1)
        await say(database, "bob")
        await drain(database)
        assert taken_by(server) == ["bob"]

        clock.move(timedelta(seconds=30))
        await drain(database)

    assert taken_by(server) == ["ada", "bob"]
    assert await waiting(database) == 0


@pytest.mark.parametrize("command", ["MAIL", "DATA"])
async def test_a_connection_that_is_lost_loses_no_mail(database: Database, command: str) -> None:
    await with_address(database, "ada")

    async with mail_server(answers={command: [""]}) as server:
        set_mail(database, smtp_url=server.url())
        await say(database, "ada")
        await drain(database)
        assert (taken_by(server), await waiting(database)) == ([], 1)
        clock.move(timedelta(seconds=30))
        await drain(database)

    assert (taken_by(server), await waiting(database)) == (["ada"], 0)


async def test_what_the_server_never_takes_is_told_to_the_log_and_not_tried_again(
    database: Database,
) -> None:
    await with_address(database, "ada")

    async with mail_server(answers={"RCPT": ["550 <ada@example.com> is unknown"]}) as server:
        set_mail(database, smtp_url=server.url())
        with capture_logs() as logs:
            await say(database, "ada")
            await drain(database)
        clock.move(timedelta(hours=2))
        await drain(database)

    assert (server.envelopes, await waiting(database)) == ([], 0)
    (line,) = [line for line in logs if line["event"] == "mail refused"]
    assert line == {
        "event": "mail refused",
        "log_level": "warning",
        "mail": line["mail"],
        "kind": "message",
        "reason": "The mail server refused the mail (550).",
    }


async def test_no_line_of_the_log_names_an_address_or_what_a_mail_says(
    database: Database,
) -> None:
    await with_address(database, "ada")
    answers = ["451 <ada@example.com> later", "550 <ada@example.com> never"]

    with capture_logs() as logs:
        async with mail_server(answers={"RCPT": answers}) as server:
            set_mail(database, smtp_url=server.url())
            for _ in range(3):
                await say(database, "ada")
                await drain(database)
                clock.move(timedelta(seconds=30))

    assert len(logs) > 3
    assert "example.com" not in str(logs)
    assert "engine" not in str(logs)


async def test_while_the_server_is_away_mails_wait(database: Database) -> None:
    await with_address(database, "ada", "bob")
    async with mail_server() as server:
        address = server.url()
    set_mail(database, smtp_url=address)

    await say(database, "ada", "bob")
    await drain(database)
    assert await waiting(database) == 2

    set_mail(database, smtp_url=None)
    clock.move(timedelta(seconds=30))
    await drain(database)
    assert (recipients(database), await waiting(database)) == (["ada", "bob"], 0)


@pytest.mark.parametrize(
    ("age", "wait"),
    [
        pytest.param(timedelta(), timedelta(seconds=1), id="at first a second"),
        pytest.param(
            timedelta(minutes=5), timedelta(minutes=5), id="then until it is twice as old"
        ),
        pytest.param(timedelta(days=2), timedelta(hours=1), id="in the end every hour"),
    ],
)
def test_the_wait_grows(age: timedelta, wait: timedelta) -> None:
    assert retry_delay(age) == wait


def test_after_three_days_it_is_a_failure_like_any_other() -> None:
    with pytest.raises(MailUnavailable):
        retry_delay(timedelta(days=3, seconds=1))
