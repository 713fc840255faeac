"""Mails of a hub inside a test: who has an address, and what came there."""

import re
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.core.mail import mail_folder
from hublet.notifications.watches import store as watching
from mail_servers import parsed
from people import a_user

# What stands above the signature of a mail; the blank belongs to it (RFC 3676).
SIGNATURE = "-- "

_LINK = re.compile(r"http://hub\.test/(unsubscribe|verify-email)/([A-Za-z0-9_-]+)")


def set_mail(database: Database, **changes: Any) -> None:
    """Change the settings of mail; without any, mails are sent at once."""
    settings = database.hub.settings
    mail = replace(settings.mail, **({"delay_seconds": 0.0} | changes))
    database.hub = replace(database.hub, settings=replace(settings, mail=mail))


async def with_address(database: Database, *names: str, verified: bool = True) -> None:
    """Give users, created if need be, the address name@example.com."""
    for name in names:
        user = await a_user(database, name)
        async with database.transaction() as conn:
            await accounts.add_email(conn, user, f"{name}@example.com", verified=verified)


def letters(database: Database, to: str | None = None) -> list[EmailMessage]:
    """Return the mails in the folder, to everybody or to one user, oldest first."""
    folder = mail_folder(database.hub.settings)
    found = [parsed(path.read_bytes()) for path in sorted(folder.glob("*.eml"))]
    return [each for each in found if to is None or each["To"].addresses[0].username == to]


def subjects(database: Database, to: str) -> list[str]:
    return [str(letter["Subject"]) for letter in letters(database, to)]


def recipients(database: Database) -> list[str]:
    return sorted(letter["To"].addresses[0].username for letter in letters(database))


def link_in(text: str) -> str:
    """Return the path of the sealed link in a mail."""
    found = _LINK.search(text)
    assert found is not None
    return f"/{found[1]}/{found[2]}"


def without_tokens(text: str) -> str:
    return _LINK.sub(r"http://hub.test/\1/TOKEN", text)


async def waiting(database: Database) -> int:
    """Count the mails that wait to be sent."""
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM mails")
    return count


async def watch_as_members(database: Database, organization_id: str, *names: str) -> None:
    """Let members watch their organization, as they do once the worker has reacted."""
    for name in names:
        user = await a_user(database, name)
        async with database.transaction() as conn:
            await watching.watch_as_member(conn, organization_id, user_id=user.id)
