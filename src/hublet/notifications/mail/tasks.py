"""Tasks of mail: what is sent, and which letters are written, outside of the transaction that asked."""

from typing import Any

from hublet.accounts.invitations import SEND_INVITATION, InvitationMail
from hublet.core.database import Connection, Database
from hublet.core.queue import handles, handles_slowly
from hublet.login.password_resets import SEND_RESET_LINK, ResetRequest
from hublet.login.sign_up import SEND_ADDRESS_TAKEN, ClaimedAddress
from hublet.notifications.mail import digest, links, mail_queue, sender, tags


@handles_slowly(mail_queue.SEND)
async def send_mails(database: Database, body: dict[str, Any]) -> None:
    await sender.send(database, body["mail_ids"])


@handles(digest.BEGIN)
async def begin_digest(conn: Connection, _body: dict[str, Any]) -> None:
    await digest.begin(conn)


@handles(digest.GO_ON)
async def mail_digest_page(conn: Connection, body: dict[str, Any]) -> None:
    await digest.mail_page(conn, day=body["day"], after=body["after"])


@handles(tags.NOTIFY_OF_TAGS, reads=tags.NewTags)
async def notify_of_tags(conn: Connection, new_tags: tags.NewTags) -> None:
    await tags.notify_watchers(conn, new_tags)


@handles_slowly(links.SEND_VERIFICATION)
async def send_verification(database: Database, body: dict[str, Any]) -> None:
    await links.send_verification(database, email_id=body["email_id"])


# Mails with a link: whoever asked for them queued the tasks.
handles_slowly(SEND_RESET_LINK, reads=ResetRequest)(links.send_reset_link)
handles_slowly(SEND_INVITATION, reads=InvitationMail)(links.send_invitation)
handles_slowly(SEND_ADDRESS_TAKEN, reads=ClaimedAddress)(links.send_address_taken)
