"""Rules of device logins: started with a user code, decided by a person, consumed by the app."""

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

# RFC 8628, 6.1: 20^8 are 34.6 bits, and no word comes of them.
USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
USER_CODE_LENGTH = 8

_PUNCTUATION = re.compile(r"[\W_]+")


def new_user_code() -> str:
    """Return a code as it is compared, without a hyphen."""
    return random_text(USER_CODE_LENGTH, USER_CODE_ALPHABET)


def format_user_code(user_code: str) -> str:
    half = USER_CODE_LENGTH // 2
    return f"{user_code[:half]}-{user_code[half:]}"


def normalize_user_code(typed: str) -> str | None:
    """Return what was typed as it is compared; None when it cannot be a code.

    Hyphens, spaces and any other punctuation do not matter, nor does the case.
    """
    text = _PUNCTUATION.sub("", typed).upper()
    return text if len(text) == USER_CODE_LENGTH and set(text) <= set(USER_CODE_ALPHABET) else None


DEVICE_CODE_LIFE = timedelta(seconds=900)
INTERVAL_SECONDS = 5
MAX_PENDING = 1000
# Who polls with an expired code is told so for as long as the code is remembered.
REMEMBERED_AFTER_EXPIRY = timedelta(hours=1)

_DIGEST = "oauth-device"
_USER_CODE_DIGEST = "oauth-user-code"
_MAX_DRAWS = 10


async def start(
    conn: Connection,
    app: OAuthApp,
    scopes: frozenset[Scope],
    *,
    address: str | None,
    agent: str | None,
) -> StartedDevice:
    await store.remove_expired(conn, before=to_micros(now() - REMEMBERED_AFTER_EXPIRY))
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
    """Keep it under a user code that no other has, and return that."""
    for _ in range(_MAX_DRAWS):
        user_code = new_user_code()
        digest = conn.hub.keys.digest(_USER_CODE_DIGEST, user_code).hex()
        if await store.add(conn, device, user_code_digest=digest):
            return user_code
    raise TooManyDevices


async def find(conn: Reader, device_code: str) -> Device | None:
    """Return the request of this device code, in whatever state."""
    digests = conn.hub.keys.digests(_DIGEST, device_code)
    return await store.find(conn, [digest.hex() for digest in digests])


async def find_again(conn: Reader, device: Device) -> Device:
    """Return what became of a request since it was read."""
    return await store.find(conn, [device.digest]) or device


async def find_by_user_code(conn: Reader, typed: str) -> Device | None:
    """Return the request that waits for a decision under this code, however it was typed."""
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
    """Keep what a person decided; False when somebody decided before, or it is too late."""
    return await store.decide(
        conn,
        device.digest,
        DeviceState.approved if approved else DeviceState.denied,
        user_id=user_id,
        organization_ids=organization_ids,
        authenticated_at=to_micros(authenticated_at),
    )


async def consume(conn: Connection, device: Device, *, access_id: str) -> bool:
    """Spend an approved request; False when somebody else was faster."""
    return await store.consume(conn, device.digest, access_id=access_id)


async def slow_down(conn: Connection, device: Device) -> int:
    """Return how many seconds to wait between two polls from now on."""
    return await store.slow_down(conn, device.digest, by=INTERVAL_SECONDS) or device.interval
