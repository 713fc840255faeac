"""Rules of device logins: started by an app with a user code, decided by a person, consumed by the
app.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Collection
from datetime import datetime, timedelta

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import random_bytes, random_text
from hublet.oauth.devices import store
from hublet.oauth.devices.records import Device, DeviceState, StartedDevice
from hublet.oauth.errors import TooManyDevices
from hublet.oauth.records import OAuthApp
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
    await store.remove_expired(conn, before=to_micros(now() - STORED_AFTER_EXPIRY))
    if await store.count_pending(conn, app.id) >= MAX_PENDING:
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
        if await store.add(conn, device, user_code_digest=digest):
            return user_code
    raise TooManyDevices


async def find(conn: Reader, device_code: str) -> Device | None:
    """Return the request of this device code, in any state."""
    digests = conn.hub.keys.digests(_DIGEST, device_code)
    return await store.find(conn, [digest.hex() for digest in digests])


async def reload(conn: Reader, device: Device) -> Device:
    """Return the present state of a request."""
    return await store.find(conn, [device.digest]) or device


async def find_by_user_code(conn: Reader, typed: str) -> Device | None:
    """Return the pending request of a user code, however a person typed it."""
    user_code = normalize_user_code(typed)
    if user_code is None:
        return None
    digests = conn.hub.keys.digests(_USER_CODE_DIGEST, user_code)
    return await store.find_pending(conn, [digest.hex() for digest in digests])


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
    return await store.decide(
        conn,
        device.digest,
        DeviceState.approved if approved else DeviceState.denied,
        user_id=user_id,
        organization_ids=organization_ids,
        authenticated_at=to_micros(authenticated_at),
    )


async def consume(conn: Connection, device: Device, *, access_id: str) -> bool:
    """Mark an approved request as used; False when another request was faster."""
    return await store.consume(conn, device.digest, access_id=access_id)


async def slow_down(conn: Connection, device: Device) -> int:
    """Lengthen the interval between two polls; return the new one in seconds."""
    return await store.slow_down(conn, device.digest, by=INTERVAL_SECONDS) or device.interval


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
