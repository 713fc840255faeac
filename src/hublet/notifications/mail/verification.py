"""Proof that somebody reads the mails to an address: a link that is sent there."""

from datetime import timedelta

import msgspec

from hublet.accounts.records import Email
from hublet.accounts.settings.emails import service as emails
from hublet.core import clock
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Hub
from hublet.core.logs import get_logger
from hublet.core.mail import Letter, LetterRefused, domain_of, post_of
from hublet.core.queue import NewTask, add
from hublet.notifications.mail import store
from hublet.notifications.mail.errors import AddressGone
from hublet.notifications.mail.letters.rendering import render
from hublet.notifications.mail.links import Proof, verify_url

log = get_logger("mail")

SEND = "notifications.send-verification"

# An address that is not verified may be a stranger's, so nobody makes the hub write to many.
MOST_A_DAY = 20


async def ask(conn: Connection, *, email_id: str, user_id: str) -> None:
    """Have a link sent to a new address, unless its owner had too many sent today."""
    since = clock.to_micros(clock.now() - timedelta(days=1))
    if not await store.count_verification(conn, user_id=user_id, since=since, most=MOST_A_DAY):
        log.warning("too many verification mails", user_id=user_id)
        return
    body = msgspec.json.encode({"email_id": email_id}).decode()
    await add(conn, NewTask(kind=SEND, body=body))


async def send(database: Database, *, email_id: str) -> None:
    async with database.read() as conn:
        email = await emails.find(conn, email_id)
        if email is None or email.verified_at is not None:
            return
        letter = await _letter(conn, email)
    async with post_of(database.hub.settings) as post:
        try:
            await post.send(letter)
        except LetterRefused as error:
            log.warning("verification mail refused", email_id=email_id, reason=str(error))


async def _letter(conn: Reader, email: Email) -> Letter:
    hub: Hub = conn.hub
    values = {
        "name": (await store.name_of(conn, email.user_id)),
        "address": email.address,
        "url": verify_url(hub, email_id=email.id, address=email.address),
        "base_url": hub.settings.base_url,
    }
    return Letter(
        sender=hub.settings.mail.sender,
        recipient=email.address,
        subject="Is this your address?",
        text=render("verification.txt", values),
        html=render("verification.html", values),
        message_id=f"<verify.{email.id}@{domain_of(hub.settings)}>",
        sent_at=clock.now(),
        headers={"Auto-Submitted": "auto-generated"},
    )


async def verify(conn: Connection, proof: Proof) -> None:
    """Take the address as verified; that it was already is fine."""
    if not await emails.verify(conn, proof.email_id, address=proof.address):
        raise AddressGone
