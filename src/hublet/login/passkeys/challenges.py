"""Challenges that a passkey signs: for one purpose, once, within five minutes.

The browser keeps the challenge, sealed, so that showing a page writes nothing. Only when one is
answered its digest is stored, and it is not taken a second time.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import field
from datetime import datetime, timedelta

from hublet.core.clock import from_micros, now, to_micros
from hublet.core.hub import Hub
from hublet.core.ids import random_bytes
from hublet.core.light_dataclasses import dataclass
from hublet.core.sealing import SealBroken
from hublet.login.records import Session

LIFETIME = timedelta(minutes=5)
SIGN_IN = "sign in"

_TIME_BYTES = 8
_CHALLENGE_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    value: bytes = field(repr=False)
    expires_at: datetime


def new_challenge() -> Challenge:
    return Challenge(value=random_bytes(_CHALLENGE_BYTES), expires_at=now() + LIFETIME)


def adding_to(session: Session) -> str:
    """Name the purpose of a challenge that only this session can answer."""
    return f"add {session.id}"


def seal(hub: Hub, challenge: Challenge, purpose: str) -> str:
    plain = to_micros(challenge.expires_at).to_bytes(_TIME_BYTES, "big") + challenge.value
    return urlsafe_b64encode(hub.keys.seal(plain, context=_context(purpose))).decode()


def unseal(hub: Hub, text: str | None, purpose: str) -> Challenge | None:
    """Return the challenge unless it is broken, for another purpose, or too old."""
    try:
        plain = hub.keys.open(urlsafe_b64decode(text or ""), context=_context(purpose))
    except (SealBroken, ValueError):
        return None
    expires_at = from_micros(int.from_bytes(plain[:_TIME_BYTES], "big"))
    if expires_at <= now():
        return None
    return Challenge(value=plain[_TIME_BYTES:], expires_at=expires_at)


def _context(purpose: str) -> str:
    return f"passkey challenge {purpose}"
