"""Links in mails that do one thing without a login: sealed, so that nobody else makes one."""

import base64
import binascii
from datetime import timedelta

import msgspec

from hublet.core import clock
from hublet.core.hub import Hub
from hublet.core.light_dataclasses import dataclass
from hublet.core.sealing import SealBroken
from hublet.notifications.mail.errors import LinkBroken, LinkExpired
from hublet.notifications.preferences.keys import Key

UNSUBSCRIBE = "/unsubscribe/"
VERIFY = "/verify-email/"

VERIFY_WITHIN = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One kind of mails to one user. It has no end: old mails can be left as well."""

    user_id: str
    key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whoever has it reads the mails to this address."""

    email_id: str
    address: str
    expires_at: int


def unsubscribe_url(hub: Hub, user_id: str, key: Key) -> str:
    return _url(hub, UNSUBSCRIBE, Subscription(user_id=user_id, key=key))


def verify_url(hub: Hub, *, email_id: str, address: str) -> str:
    expires_at = clock.to_micros(clock.now() + VERIFY_WITHIN)
    return _url(hub, VERIFY, Proof(email_id=email_id, address=address, expires_at=expires_at))


def read_subscription(hub: Hub, token: str) -> Subscription:
    return msgspec.json.decode(_opened(hub, UNSUBSCRIBE, token), type=Subscription)


def read_proof(hub: Hub, token: str) -> Proof:
    proof = msgspec.json.decode(_opened(hub, VERIFY, token), type=Proof)
    if proof.expires_at < clock.micros():
        raise LinkExpired
    return proof


def _url(hub: Hub, path: str, content: Subscription | Proof) -> str:
    sealed = hub.keys.seal(msgspec.json.encode(content), context=path)
    token = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    return f"{hub.settings.base_url}{path}{token}"


def _opened(hub: Hub, path: str, token: str) -> bytes:
    """Return what a link of this kind holds; one of another kind is as good as forged."""
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars="-_", validate=True)
        return hub.keys.open(sealed, context=path)
    except (binascii.Error, ValueError, SealBroken):
        raise LinkBroken from None
