"""Mail transports: the interface, a folder of files, and the choice between it and SMTP."""

import asyncio
import os
import re
from abc import ABC, abstractmethod
from pathlib import Path
from ssl import SSLContext
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from hublet.core import ids
from hublet.core.config import Settings
from hublet.core.mail.message import MailMessage, MailUnavailable


class MailTransport(ABC):
    """Sends messages, one after the other, over what it keeps open until the block ends.

    For one task at a time.
    """

    @abstractmethod
    async def send(self, message: MailMessage) -> None:
        """Hand the message over; MailRefused when that is in vain, MailUnavailable for now."""

    @abstractmethod
    async def check(self) -> None:
        """Raise MailUnavailable unless messages could be sent now; none is."""

    @abstractmethod
    async def close(self) -> None:
        """Close what is open; failures of that are ignored."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class FolderTransport(MailTransport):
    """A file for each message, named by its message id: a message that comes twice lies there once.

    Files appear whole, and only the owner of the folder can read them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, message: MailMessage) -> None:
        await asyncio.to_thread(self._write, message)

    async def check(self) -> None:
        await asyncio.to_thread(self._prepare)

    async def close(self) -> None:
        pass

    def _prepare(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(error) from error
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise MailUnavailable("The folder for mails cannot be written.")

    def _write(self, message: MailMessage) -> None:
        from hublet.core.mail.encoding import encode  # noqa: PLC0415 - it takes 30 ms to load

        self._prepare()
        temporary = self._folder / f".{ids.random_bytes(8).hex()}"
        try:
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_bytes(encode(message))
            temporary.replace(self._folder / _file_name(message))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _unwritable(error) from error


def _file_name(message: MailMessage) -> str:
    name = message.message_id.strip("<>").partition("@")[0]
    return re.sub(r"[^A-Za-z0-9.-]", "_", name).lstrip(".") + ".eml"


def _unwritable(error: OSError) -> MailUnavailable:
    return MailUnavailable(f"The folder for mails cannot be written ({error.strerror}).")


MAIL_FOLDER = "mail"


def mail_folder(settings: Settings) -> Path:
    return settings.database.data_dir / MAIL_FOLDER


def mail_domain(settings: Settings) -> str:
    """Return the host of this hub as mail writes it, in message ids and greetings."""
    host = urlsplit(settings.base_url).hostname or "localhost"
    return f"[IPv6:{host}]" if ":" in host else host


def open_transport(settings: Settings, *, tls: SSLContext | None = None) -> MailTransport:
    """Return the transport that the settings name; `tls` replaces the usual trust."""
    if settings.mail.smtp_url is None:
        return FolderTransport(mail_folder(settings))
    from hublet.core.mail.smtp import SmtpTransport  # noqa: PLC0415 - its library takes 90 ms to load

    return SmtpTransport(settings.mail.smtp_url, greets_as=mail_domain(settings), tls=tls)
