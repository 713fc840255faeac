"""The door itself: a mail server when one is set, a folder of files otherwise."""

from pathlib import Path
from ssl import SSLContext
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.core.mail.folder import FolderPost
from hublet.core.mail.post import Post

FOLDER = "mail"


def folder_of(settings: Settings) -> Path:
    return settings.database.data_dir / FOLDER


def domain_of(settings: Settings) -> str:
    """Return the host of this hub as mail writes it, in message ids and greetings."""
    host = urlsplit(settings.base_url).hostname or "localhost"
    return f"[IPv6:{host}]" if ":" in host else host


def post_of(settings: Settings, *, tls: SSLContext | None = None) -> Post:
    """Return the door that the settings name; `tls` tells whom to trust, by default as usual."""
    if settings.mail.smtp_url is None:
        return FolderPost(folder_of(settings))
    from hublet.core.mail.smtp import SmtpPost  # noqa: PLC0415 - its library takes 90 ms to load

    return SmtpPost(settings.mail.smtp_url, greets_as=domain_of(settings), tls=tls)
