"""SMTP transport of mail. Loaded late: its library takes 90 ms."""

import asyncio
import ssl
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

import aiosmtplib

from hublet.core.mail.encoding import encode, sender_address
from hublet.core.mail.message import MailDelayed, MailMessage, MailRefused, MailUnavailable
from hublet.core.mail.transport import MailTransport

_PORTS = {"smtp": 25, "smtps": 465}
# One answer of the server, and all of them for one message.
_ANSWER_SECONDS = 20.0
_MESSAGE_SECONDS = 60.0
_PERMANENT = range(500, 600)


class SmtpTransport(MailTransport):
    """A connection that is made with the first message, and anew when it was lost.

    smtps:// begins with TLS. smtp:// changes to it where the server offers that, and a password
    goes nowhere without it, unless the server runs on this machine.
    """

    def __init__(self, url: str, *, greets_as: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "localhost"
        self._port = parts.port or _PORTS[parts.scheme]
        self._begins_with_tls = parts.scheme == "smtps"
        self._user = None if parts.username is None else unquote(parts.username)
        self._password = unquote(parts.password or "")
        self._greets_as = greets_as
        self._tls = tls
        self._client: aiosmtplib.SMTP | None = None

    async def send(self, message: MailMessage) -> None:
        client = self._client or await self._connect()
        try:
            async with asyncio.timeout(_MESSAGE_SECONDS):
                await client.sendmail(sender_address(message), [message.recipient], encode(message))
        except BaseException as error:
            # The state of the conversation is unknown.
            self._disconnect()
            if isinstance(error, aiosmtplib.SMTPException | OSError):
                raise _failure(error) from None
            raise

    async def check(self) -> None:
        if self._client is None:
            await self._connect()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            # The server has every message already.
            with suppress(aiosmtplib.SMTPException, OSError):
                await client.quit(timeout=1.0)
            client.close()

    async def _connect(self) -> aiosmtplib.SMTP:
        client = aiosmtplib.SMTP(
            hostname=self._host,
            port=self._port,
            local_hostname=self._greets_as,
            timeout=_ANSWER_SECONDS,
            use_tls=self._begins_with_tls,
            tls_context=self._tls or await asyncio.to_thread(_default_tls),
        )
        self._client = client
        try:
            async with asyncio.timeout(_MESSAGE_SECONDS):
                await client.connect()
                await self._log_in(client)
        except BaseException as error:
            self._disconnect()
            if isinstance(error, aiosmtplib.SMTPException | OSError):
                raise _unavailable(error) from None
            raise
        return client

    async def _log_in(self, client: aiosmtplib.SMTP) -> None:
        if self._user is None:
            return
        if client.get_transport_info("sslcontext") is None and not _is_this_machine(self._host):
            raise MailUnavailable("The mail server offers no TLS, so no password was sent to it.")
        await client.login(self._user, self._password)

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


@cache
def _default_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _failure(error: Exception) -> Exception:
    """Only the answer to a message can be about the message; one to a greeting or login is not."""
    code = _code_of(error)
    if code in _PERMANENT:
        return MailRefused(f"The mail server refused the mail ({code}).")
    if code is not None:
        return MailDelayed(f"The mail server does not take the mail now ({code}).")
    return _unavailable(error)


def _code_of(error: Exception) -> int | None:
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return max((each.code for each in error.recipients), default=None)
    return error.code if isinstance(error, aiosmtplib.SMTPResponseException) else None


def _unavailable(error: Exception) -> MailUnavailable:
    return MailUnavailable(f"The mail server {_describe_failure(error)}.")


def _describe_failure(error: Exception) -> str:
    """Say what happened without the words of the server, which may hold addresses."""
    code = _code_of(error)
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return f"refused the login ({code})"
    if code is not None:
        return f"lets nobody in now ({code})"
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return "has a certificate that is not trusted"
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    is_absent = isinstance(error, aiosmtplib.SMTPConnectError)
    return "cannot be reached" if is_absent else f"broke off ({type(error).__name__})"
