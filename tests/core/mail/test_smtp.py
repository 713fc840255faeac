"""Mails to a real server on loopback, in good and in bad moods."""

import asyncio
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hublet.core.config import Settings
from hublet.core.mail import (
    MailDelayed,
    MailMessage,
    MailRefused,
    MailTransport,
    MailUnavailable,
    open_transport,
)
from mail_servers import mail_server
from outgoing_servers import certificate

LOGIN = "hublet:p%40ss%2Fword@"


def a_letter(**changes: Any) -> MailMessage:
    values: dict[str, Any] = {
        "sender": "Hublet <hublet@hub.test>",
        "recipient": "ada@example.com",
        "subject": "Hello",
        "text": "Hello, Ada.\n",
        "message_id": "<1@hub.test>",
        "sent_at": datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC),
    }
    return MailMessage(**(values | changes))


def the_post(url: str, trusted: Path | None = None) -> MailTransport:
    settings = Settings()
    settings = replace(settings, mail=replace(settings.mail, smtp_url=url))
    tls = None if trusted is None else ssl.create_default_context(cafile=str(trusted))
    return open_transport(settings, tls=tls)


async def test_letters_go_over_one_connection() -> None:
    async with mail_server() as server, the_post(server.url()) as post:
        await post.send(a_letter())
        await post.send(a_letter(recipient="bob@example.com"))

    assert server.connections == 1
    assert [envelope.mail_from for envelope in server.envelopes] == ["hublet@hub.test"] * 2
    assert [envelope.rcpt_tos for envelope in server.envelopes] == [
        ["ada@example.com"],
        ["bob@example.com"],
    ]
    assert dict(server.messages[0].items()) == {
        "From": "Hublet <hublet@hub.test>",
        "To": "ada@example.com",
        "Subject": "Hello",
        "Date": "Sun, 15 Nov 2026 01:44:56 +0000",
        "Message-ID": "<1@hub.test>",
        "MIME-Version": "1.0",
        "Content-Type": 'text/plain; charset="utf-8"',
        "Content-Transfer-Encoding": "quoted-printable",
    }


async def test_where_the_server_offers_tls_it_is_used_and_the_login_goes_through(
    tmp_path: Path,
) -> None:
    trusted, tls = certificate(tmp_path)

    async with (
        mail_server(starttls=tls, login=True) as server,
        the_post(server.url(login=LOGIN), trusted) as post,
    ):
        await post.send(a_letter())

    assert server.logins == [("hublet", True)]


async def test_smtps_begins_with_tls(tmp_path: Path) -> None:
    trusted, tls = certificate(tmp_path)

    async with (
        mail_server(tls=tls) as server,
        the_post(server.url(scheme="smtps"), trusted) as post,
    ):
        await post.send(a_letter())

    assert len(server.envelopes) == 1


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_server_that_nobody_vouches_for_gets_no_mail(tmp_path: Path, scheme: str) -> None:
    _, tls = certificate(tmp_path)
    plain, begun = (tls, None) if scheme == "smtp" else (None, tls)

    async with (
        mail_server(starttls=plain, tls=begun) as server,
        the_post(server.url(scheme=scheme)) as post,
    ):
        with pytest.raises(MailUnavailable) as refused:
            await post.send(a_letter())

    assert str(refused.value) == "The mail server has a certificate that is not trusted."
    assert server.envelopes == []


async def test_a_refused_login_is_no_fault_of_the_letter(tmp_path: Path) -> None:
    trusted, tls = certificate(tmp_path)

    async with (
        mail_server(starttls=tls, login=True) as server,
        the_post(server.url(login="hublet:wrong@"), trusted) as post,
    ):
        with pytest.raises(MailUnavailable) as refused:
            await post.send(a_letter())

    assert type(refused.value) is MailUnavailable
    assert str(refused.value) == "The mail server refused the login (535)."


async def test_no_password_goes_to_another_machine_without_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hublet.core.mail.smtp._is_this_machine", lambda _host: False)

    async with mail_server(login=True) as server, the_post(server.url(login=LOGIN)) as post:
        with pytest.raises(MailUnavailable) as refused:
            await post.send(a_letter())

    assert str(refused.value) == "The mail server offers no TLS, so no password was sent to it."
    assert server.logins == []


async def test_a_password_goes_to_this_machine_without_tls() -> None:
    async with mail_server(login=True) as server, the_post(server.url(login=LOGIN)) as post:
        await post.send(a_letter())

    assert server.logins == [("hublet", False)]


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_what_the_server_will_never_take_is_refused(command: str) -> None:
    answers = {command: ["550 5.1.1 <ada@example.com> is not here"]}
    async with mail_server(answers=answers) as server, the_post(server.url()) as post:
        with pytest.raises(MailRefused) as refused:
            await post.send(a_letter())
        await post.send(a_letter())

    assert str(refused.value) == "The mail server refused the mail (550)."
    assert len(server.envelopes) == 1


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_what_the_server_takes_later_is_delayed(command: str) -> None:
    async with (
        mail_server(answers={command: ["451 4.7.1 come again"]}) as server,
        the_post(server.url()) as post,
    ):
        with pytest.raises(MailDelayed) as delayed:
            await post.send(a_letter())
        await post.send(a_letter())

    assert str(delayed.value) == "The mail server does not take the mail now (451)."
    assert len(server.envelopes) == 1


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_after_a_lost_connection_the_next_letter_makes_another(command: str) -> None:
    async with mail_server(answers={command: [""]}) as server, the_post(server.url()) as post:
        with pytest.raises(MailUnavailable) as lost:
            await post.send(a_letter())
        await post.send(a_letter())

    assert str(lost.value) == "The mail server broke off (SMTPServerDisconnected)."
    assert (server.connections, len(server.envelopes)) == (2, 1)


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    async with mail_server() as server:
        url = server.url()

    async with the_post(url) as post:
        with pytest.raises(MailUnavailable) as absent:
            await post.send(a_letter())
        with pytest.raises(MailUnavailable):
            await post.check()

    assert str(absent.value) == "The mail server cannot be reached."


async def test_a_silent_server_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hublet.core.mail.smtp._ANSWER_SECONDS", 0.05)

    async with mail_server() as server:
        monkeypatch.setattr(type(server), "handle_DATA", _never)
        async with the_post(server.url()) as post:
            with pytest.raises(MailUnavailable) as late:
                await post.send(a_letter())

    assert str(late.value) == "The mail server did not answer in time."


async def _never(*_: object) -> str:
    await asyncio.sleep(0.3)
    return "250 OK"


async def test_a_check_sends_nothing() -> None:
    async with mail_server() as server, the_post(server.url()) as post:
        await post.check()

    assert (server.connections, server.envelopes) == (1, [])
