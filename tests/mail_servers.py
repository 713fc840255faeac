"""Mail servers on loopback: each takes mails, or refuses them in its own way."""

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

Answers = dict[str, list[str]]


@dataclass(slots=True)
class MailServer:
    """What a server took so far, and what it answers instead of yes.

    `answers` holds, by command (MAIL, RCPT, DATA), what is said before it says yes; `""` drops
    the connection in place of an answer.
    """

    port: int = 0
    connections: int = 0
    answers: Answers = field(default_factory=dict)
    envelopes: list[Envelope] = field(default_factory=list)
    # Who logged in with each mail, and whether TLS was on.
    logins: list[tuple[str | None, bool]] = field(default_factory=list)

    def url(self, *, scheme: str = "smtp", login: str = "") -> str:
        return f"{scheme}://{login}127.0.0.1:{self.port}"

    @property
    def messages(self) -> list[EmailMessage]:
        return [parsed(envelope.original_content or b"") for envelope in self.envelopes]

    def _answer(self, server: SMTP, command: str) -> str | None:
        if not self.answers.get(command):
            return None
        answer = self.answers[command].pop(0)
        if not answer:
            _hang_up(server)
        return answer or "421 gone"

    async def handle_MAIL(  # noqa: N802 - the library's name
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if (answer := self._answer(server, "MAIL")) is not None:
            return answer
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - as above
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if (answer := self._answer(server, "RCPT")) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - as above
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if (answer := self._answer(server, "DATA")) is not None:
            return answer
        self.envelopes.append(envelope)
        self.logins.append((session.auth_data, session.ssl is not None))
        return "250 OK"


def _hang_up(server: SMTP) -> None:
    if isinstance(server.transport, asyncio.WriteTransport):
        server.transport.abort()


def parsed(content: bytes) -> EmailMessage:
    message = message_from_bytes(content.replace(b"\r\n", b"\n"), policy=default)
    assert isinstance(message, EmailMessage)
    return message


def texts_of(message: EmailMessage) -> tuple[str, str]:
    """Return the plain text and the HTML of a mail."""
    text, html = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert html is not None
    return text.get_content(), html.get_content()


def _check_login(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, login: Any
) -> AuthResult:
    assert isinstance(login, LoginPassword)
    fits = login.password == b"p@ss/word"
    return AuthResult(success=fits, handled=False, auth_data=login.login.decode())


@asynccontextmanager
async def mail_server(
    *,
    starttls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    login: bool = False,
    answers: Answers | None = None,
) -> AsyncIterator[MailServer]:
    """Run a mail server until the block ends; `login` makes it demand one, with p@ss/word."""
    taken = MailServer(answers=answers or {})
    loop = asyncio.get_running_loop()

    accepted: list[SMTP] = []

    def accept() -> SMTP:
        taken.connections += 1
        with warnings.catch_warnings():
            # The library warns of a login without TLS, which some tests are about.
            warnings.simplefilter("ignore")
            accepted.append(
                SMTP(
                    taken,
                    hostname="mail.test",
                    tls_context=starttls,
                    auth_required=login,
                    auth_require_tls=starttls is not None,
                    authenticator=_check_login if login else None,
                    loop=loop,
                )
            )
        return accepted[-1]

    server = await loop.create_server(accept, "127.0.0.1", 0, ssl=tls)
    taken.port = server.sockets[0].getsockname()[1]
    try:
        yield taken
    finally:
        server.close()
        for each in accepted:
            _hang_up(each)
        await server.wait_closed()
        # What the library still does about connections that ended takes a moment.
        await asyncio.sleep(0.01)
