"""Rules of device logins: started by an app with a user code, decided by a person, consumed by the app.

There are 20^8 codes, and a few of them are pending at a time (RFC 8628, 5.1). A wrong code names no
app, so guesses are limited by user and by address only.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Collection
from datetime import datetime, timedelta

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_bytes, random_text
from hublet.core.limits import Limiter, RateLimit
from hublet.login.records import Session
from hublet.oauth import devices_store
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import consents
from hublet.oauth.authorize.consents import ConsentDecision
from hublet.oauth.authorize.records import ConsentQuestion
from hublet.oauth.errors import DeviceAlreadyDecided, TooManyDevices, TooManyGuesses
from hublet.oauth.records import Device, DeviceState, OAuthApp, StartedDevice
from hublet.tokens.records import Scope

# RFC 8628, 6.1: 20^8 codes are 34.6 bits, and without vowels none is a word.
USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
USER_CODE_LENGTH = 8

DEVICE_CODE_LIFE = timedelta(seconds=900)
INTERVAL_SECONDS = 5
MAX_PENDING = 1000
# An expired code is stored for this long, so that a poll learns that it has expired.
STORED_AFTER_EXPIRY = timedelta(hours=1)

_DIGEST = "oauth-device"
_USER_CODE_DIGEST = "oauth-user-code"
_MAX_TRIES = 10
_PUNCTUATION = re.compile(r"[\W_]+")


async def start(
    conn: Connection,
    app: OAuthApp,
    scopes: frozenset[Scope],
    *,
    address: str | None,
    agent: str | None,
) -> StartedDevice:
    await devices_store.remove_expired(conn, before=to_micros(now() - STORED_AFTER_EXPIRY))
    if await devices_store.count_pending(conn, app.id) >= MAX_PENDING:
        raise TooManyDevices
    value = "dc_" + urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()
    device = Device(
        digest=conn.hub.keys.digest(_DIGEST, value).hex(),
        app_id=app.id,
        scopes=scopes,
        state=DeviceState.pending,
        interval=INTERVAL_SECONDS,
        address=address,
        agent=agent,
        created_at=now(),
        expires_at=now() + DEVICE_CODE_LIFE,
    )
    return StartedDevice(
        device_code=value, user_code=format_user_code(await _add_with_user_code(conn, device))
    )


async def _add_with_user_code(conn: Connection, device: Device) -> str:
    """Store the request under a user code that no other has; return the code."""
    for _ in range(_MAX_TRIES):
        user_code = new_user_code()
        digest = conn.hub.keys.digest(_USER_CODE_DIGEST, user_code).hex()
        if await devices_store.add(conn, device, user_code_digest=digest):
            return user_code
    raise TooManyDevices


async def find(conn: Reader, device_code: str) -> Device | None:
    """Return the request of this device code, in any state."""
    digests = conn.hub.keys.digests(_DIGEST, device_code)
    return await devices_store.find(conn, [digest.hex() for digest in digests])


async def reload(conn: Reader, device: Device) -> Device:
    """Return the present state of a request."""
    return await devices_store.find(conn, [device.digest]) or device


async def find_by_user_code(conn: Reader, typed: str) -> Device | None:
    """Return the pending request of a user code, however a person typed it."""
    user_code = normalize_user_code(typed)
    if user_code is None:
        return None
    digests = conn.hub.keys.digests(_USER_CODE_DIGEST, user_code)
    return await devices_store.find_pending(conn, [digest.hex() for digest in digests])


async def decide(
    conn: Connection,
    device: Device,
    *,
    approved: bool,
    user_id: str,
    organization_ids: Collection[str] = (),
    authenticated_at: datetime,
) -> bool:
    """Store a person's decision; False when there is one already, or the code has expired."""
    return await devices_store.decide(
        conn,
        device.digest,
        DeviceState.approved if approved else DeviceState.denied,
        user_id=user_id,
        organization_ids=organization_ids,
        authenticated_at=to_micros(authenticated_at),
    )


async def consume(conn: Connection, device: Device, *, access_id: str) -> bool:
    """Mark an approved request as used; False when another request was faster."""
    return await devices_store.consume(conn, device.digest, access_id=access_id)


async def slow_down(conn: Connection, device: Device) -> int:
    """Lengthen the interval between two polls; return the new one in seconds."""
    return (
        await devices_store.slow_down(conn, device.digest, by=INTERVAL_SECONDS) or device.interval
    )


def new_user_code() -> str:
    """Return a code in the form that is compared, without a hyphen."""
    return random_text(USER_CODE_LENGTH, USER_CODE_ALPHABET)


def format_user_code(user_code: str) -> str:
    half = USER_CODE_LENGTH // 2
    return f"{user_code[:half]}-{user_code[half:]}"


def normalize_user_code(typed: str) -> str | None:
    """Return the typed code in the form that is compared; None when it cannot be one.

    Hyphens, spaces and any other punctuation do not matter, nor does the case.
    """
    text = _PUNCTUATION.sub("", typed).upper()
    return text if len(text) == USER_CODE_LENGTH and set(text) <= set(USER_CODE_ALPHABET) else None


GUESSES_OF_USER = RateLimit(name="device-user", quota=5, window_seconds=900)
GUESSES_OF_ADDRESS = RateLimit(name="device-address", quota=20, window_seconds=3600)


def count_guess(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Count a guess before it is checked: beyond the limit even a right one is refused."""
    verdicts = (limiter.count(GUESSES_OF_USER, user_id), limiter.count(GUESSES_OF_ADDRESS, address))
    spent = [verdict.reset_seconds for verdict in verdicts if not verdict.allowed]
    if spent:
        raise TooManyGuesses(max(spent))


def refund_guess(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Give back a guess that was right."""
    limiter.refund(GUESSES_OF_USER, user_id)
    limiter.refund(GUESSES_OF_ADDRESS, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceQuestion:
    device: Device
    question: ConsentQuestion


async def find_question(conn: Reader, typed: str, *, user_id: str) -> DeviceQuestion | None:
    """Return the question about a code; it is asked even if the person agreed to the app before."""
    device = await find_by_user_code(conn, typed)
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None:
        return None
    question = await consents.build_question(conn, app, user_id=user_id, scopes=device.scopes)
    return DeviceQuestion(device=device, question=question)


async def answer(conn: Connection, decision: ConsentDecision, *, session: Session) -> OAuthApp:
    """Store the decision about a device; the first one counts."""
    ticket = decision.ticket
    device = await devices_store.find(conn, [ticket.subject])
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None or app.revision != ticket.revision:
        raise DeviceAlreadyDecided
    organization_ids = await consents.own_organizations(
        conn, decision.organization_ids or frozenset(), user_id=session.user_id
    )
    is_first = await decide(
        conn,
        device,
        approved=decision.organization_ids is not None,
        user_id=session.user_id,
        organization_ids=organization_ids,
        authenticated_at=session.authenticated_at,
    )
    if not is_first:
        raise DeviceAlreadyDecided
    return app
