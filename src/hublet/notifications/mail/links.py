"""Links in mails that work without a login: unsubscribe, verify an address, reset a password, join.

The first two are sealed and stored nowhere; the others are stored by `login` and `accounts`.
"""

import base64
import binascii
from datetime import timedelta

import msgspec

from hublet.accounts.invitations import InvitationMail
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
from hublet.login import password_resets
from hublet.login.password_resets import ResetRequest
from hublet.login.sign_up import ClaimedAddress
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
    email = await emails.get(conn, email_id, user_id=user_id)
    if email.verified_at is None:
        await request_verification(conn, email_id=email_id, user_id=user_id)


async def send_verification(database: Database, *, email_id: str) -> None:
    async with database.read() as conn:
        email = await emails.find(conn, email_id)
        if email is None or email.verified_at is not None:
            return
        letter = await _verification_letter(conn, email)
    await _send(database, letter)


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


async def send_reset_link(database: Database, request: ResetRequest) -> None:
    """Mail a link to a new password to whoever has this address; nothing to anybody else.

    The link is made here: its secret is in the mail and nowhere else.
    """
    async with database.transaction() as conn:
        user = await password_resets.find_user(conn, request.email)
        if user is None:
            return
        url = await password_resets.create_link(conn, user)
    where = database.hub.settings.base_url
    paragraphs = (
        f"Somebody, probably you, asked for a new password of the account {user.name} at {where}.",
        "The link works once, within an hour. If you did not ask for it, do nothing.",
    )
    letter = _link_letter(
        database.hub,
        request.email,
        "A new password",
        paragraphs,
        url=url,
        button="Choose a new password",
    )
    await _send(database, letter)


async def send_invitation(database: Database, mail: InvitationMail) -> None:
    hub = database.hub
    organization = f"{mail.organization_name} at " if mail.organization_name else ""
    paragraphs = (
        f"{mail.creator_name} invites you to {organization}{hub.settings.base_url}.",
        "The link works once, within 7 days. If you do not want to, do nothing.",
    )
    subject = f"Join {mail.organization_name or mail_domain(hub.settings)}"
    letter = _link_letter(
        hub, mail.recipient, subject, paragraphs, url=mail.link(hub), button="Open the invitation"
    )
    await _send(database, letter)


async def send_address_taken(database: Database, claim: ClaimedAddress) -> None:
    """Write to the owner of an address that somebody signed up with."""
    async with database.read() as conn:
        user = await password_resets.find_user(conn, claim.email)
    if user is None:
        return
    where = database.hub.settings.base_url
    paragraphs = (
        f"Somebody gave this address, that of {user.name}, for a new account at {where}.",
        "If it was you, sign in with your account. You can ask for a new password there.",
    )
    url = f"{where}/login"
    letter = _link_letter(
        database.hub,
        claim.email,
        "You have an account already",
        paragraphs,
        url=url,
        button="Sign in",
    )
    await _send(database, letter)


def _link_letter(
    hub: Hub, recipient: str, subject: str, paragraphs: tuple[str, str], *, url: str, button: str
) -> MailMessage:
    values = {"subject": subject, "paragraphs": paragraphs, "url": url, "button": button}
    return MailMessage(
        sender=hub.settings.mail.sender,
        recipient=recipient,
        subject=subject,
        text=render("link.txt", values),
        html=render("link.html", values),
        message_id=f"<link.{new_object_id()}@{mail_domain(hub.settings)}>",
        sent_at=clock.now(),
        headers={"Auto-Submitted": "auto-generated"},
    )


async def _send(database: Database, letter: MailMessage) -> None:
    async with open_transport(database.hub.settings) as transport:
        try:
            await transport.send(letter)
        except MailRefused as error:
            log.warning("mail refused", subject=letter.subject, reason=str(error))
