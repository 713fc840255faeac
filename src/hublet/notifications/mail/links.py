"""Sealed links in mails that work without a login: unsubscribe, and verify an address."""

import base64
import binascii
from datetime import timedelta

import msgspec

from hublet.accounts.errors import EmailNotFound
from hublet.accounts.records import UserEmail
from hublet.accounts.settings import emails
from hublet.core import clock
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.core.mail import MailMessage, MailRefused, mail_domain, open_transport
from hublet.core.queue import NewTask, add
from hublet.core.sealing import SealBroken
from hublet.notifications.errors import AddressGone, LinkBroken, LinkExpired
from hublet.notifications.mail import store
from hublet.notifications.mail.letters import render
from hublet.notifications.preferences.switches import PreferenceKey

log = get_logger("mail")
UNSUBSCRIBE = "/unsubscribe/"
VERIFY = "/verify-email/"
SEND_VERIFICATION = "notifications.send-verification"
VERIFY_WITHIN = timedelta(days=7)
# An unverified address may be a stranger's, so nobody can make the hub write to many.
MOST_A_DAY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSubscription:
    """One kind of mail to one user. It does not expire: the link in an old mail works as well."""

    user_id: str
    key: PreferenceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressProof:
    """Proof that its bearer reads the mails to this address."""

    email_id: str
    address: str
    expires_at: int


def unsubscribe_url(hub: Hub, user_id: str, key: PreferenceKey) -> str:
    return _sealed_url(hub, UNSUBSCRIBE, MailSubscription(user_id=user_id, key=key))


def verify_url(hub: Hub, *, email_id: str, address: str) -> str:
    expires_at = clock.to_micros(clock.now() + VERIFY_WITHIN)
    return _sealed_url(
        hub, VERIFY, AddressProof(email_id=email_id, address=address, expires_at=expires_at)
    )


def read_subscription(hub: Hub, token: str) -> MailSubscription:
    return msgspec.json.decode(_open_token(hub, UNSUBSCRIBE, token), type=MailSubscription)


def read_proof(hub: Hub, token: str) -> AddressProof:
    proof = msgspec.json.decode(_open_token(hub, VERIFY, token), type=AddressProof)
    if proof.expires_at < clock.micros():
        raise LinkExpired
    return proof


def _sealed_url(hub: Hub, path: str, content: MailSubscription | AddressProof) -> str:
    sealed = hub.keys.seal(msgspec.json.encode(content), context=path)
    token = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    return f"{hub.settings.base_url}{path}{token}"


def _open_token(hub: Hub, path: str, token: str) -> bytes:
    """Open the token of a link of this kind; that of another kind is refused like a forged one."""
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars="-_", validate=True)
        return hub.keys.open(sealed, context=path)
    except (binascii.Error, ValueError, SealBroken):
        raise LinkBroken from None


async def request_verification(conn: Connection, *, email_id: str, user_id: str) -> None:
    """Queue a mail with a link to a new address, unless its owner had too many today."""
    since = clock.to_micros(clock.now() - timedelta(days=1))
    if not await store.count_verification(conn, user_id=user_id, since=since, most=MOST_A_DAY):
        log.warning("too many verification mails", user_id=user_id)
        return
    body = msgspec.json.encode({"email_id": email_id}).decode()
    await add(conn, NewTask(kind=SEND_VERIFICATION, body=body))


async def request_again(conn: Connection, *, email_id: str, user_id: str) -> None:
    """Queue another mail with a link to an own address that is not verified yet."""
    email = await emails.find(conn, email_id)
    if email is None or email.user_id != user_id:
        raise EmailNotFound(email_id)
    if email.verified_at is None:
        await request_verification(conn, email_id=email_id, user_id=user_id)


async def send_verification(database: Database, *, email_id: str) -> None:
    async with database.read() as conn:
        email = await emails.find(conn, email_id)
        if email is None or email.verified_at is not None:
            return
        letter = await _verification_letter(conn, email)
    async with open_transport(database.hub.settings) as transport:
        try:
            await transport.send(letter)
        except MailRefused as error:
            log.warning("verification mail refused", email_id=email_id, reason=str(error))


async def _verification_letter(conn: Reader, email: UserEmail) -> MailMessage:
    hub: Hub = conn.hub
    values = {
        "name": (await store.name_of(conn, email.user_id)),
        "address": email.address,
        "url": verify_url(hub, email_id=email.id, address=email.address),
        "base_url": hub.settings.base_url,
    }
    return MailMessage(
        sender=hub.settings.mail.sender,
        recipient=email.address,
        subject="Is this your address?",
        text=render("verification.txt", values),
        html=render("verification.html", values),
        # Another one each time, or a server may take a second link for the same mail.
        message_id=f"<verify.{email.id}.{new_object_id()}@{mail_domain(hub.settings)}>",
        sent_at=clock.now(),
        headers={"Auto-Submitted": "auto-generated"},
    )


async def verify_address(conn: Connection, proof: AddressProof) -> None:
    """Mark the address as verified, also if it was already."""
    if not await emails.verify(conn, proof.email_id, address=proof.address):
        raise AddressGone
