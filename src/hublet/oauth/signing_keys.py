"""Rules of signing keys: generate them, sign with the current one, publish it ahead of its use, replace it in
time.
"""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from hublet.core import clock
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Hub
from hublet.core.queue import add_daily
from hublet.core.sealing import KeyRing
from hublet.oauth import signing_keys_store
from hublet.oauth.records import SigningKey

# A key is published for a day before it signs: clients cache the list for hours.
PUBLISHED_AHEAD = timedelta(days=1)
KEY_LIFE = timedelta(days=90)
# An ID token lives for an hour; its key can be found until it has expired.
PUBLISHED_AFTER = timedelta(hours=2)


def signing_key(keys: Sequence[SigningKey], *, at: datetime) -> SigningKey | None:
    """Return the key that signs, of keys in the order of `store.list_all`."""
    return next((key for key in keys if key.signs_from <= at), None)


def published_keys(keys: Sequence[SigningKey], *, at: datetime) -> list[SigningKey]:
    """Return the keys that will sign, the one that does, and those that just did."""
    return [key for key, until in _with_ends(keys) if until is None or at < until + PUBLISHED_AFTER]


def is_next_due(keys: Sequence[SigningKey], *, at: datetime) -> bool:
    """Tell whether it is time to generate the key that follows the newest one."""
    return bool(keys) and at >= keys[0].signs_from + KEY_LIFE - PUBLISHED_AHEAD


def outdated_keys(keys: Sequence[SigningKey], *, at: datetime) -> list[SigningKey]:
    stay = {key.id for key in published_keys(keys, at=at)}
    return [key for key in keys if key.id not in stay]


def _with_ends(keys: Sequence[SigningKey]) -> list[tuple[SigningKey, datetime | None]]:
    """Pair each key with the moment from which the next one signs, if there is a next one."""
    ends = [None, *(key.signs_from for key in keys)]
    return list(zip(keys, ends[: len(keys)], strict=True))


ALGORITHM = "RS256"
REPLACE = "oauth.replace-keys"
EVERY = timedelta(days=1)

_BITS = 2048
_LOCK = "the signing keys of ID tokens"


async def get_signing_key(database: Database) -> SigningKey:
    """Return the key that signs now; the first call generates it."""
    async with database.read() as conn:
        key = signing_key(await signing_keys_store.list_all(conn), at=clock.now())
    return key or await _generate_first(database)


async def public_keys(database: Database) -> list[dict[str, Any]]:
    """Return the public keys that check signatures, the newest first."""
    await get_signing_key(database)
    async with database.read() as conn:
        keys = await signing_keys_store.list_all(conn)
    return [key.public for key in published_keys(keys, at=clock.now())]


async def find_public(conn: Reader, key_id: str) -> dict[str, Any] | None:
    published = published_keys(await signing_keys_store.list_all(conn), at=clock.now())
    return next((key.public for key in published if key.id == key_id), None)


async def sign(database: Database, claims: dict[str, Any]) -> str:
    """Sign claims as a JWT; the arithmetic takes half a millisecond, on another thread."""
    key = await get_signing_key(database)
    unsigned = f"{_header(key.id)}.{_base64(msgspec.json.encode(claims))}"
    return await asyncio.to_thread(_sign, database.hub.keys, key, unsigned)


async def schedule_replacement(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Add the task of the day that replaces keys, unless it is there."""
    await add_daily(conn, REPLACE, delay=delay)


async def replace_keys(database: Database) -> None:
    """Generate the next key a day before it signs, and remove those that check no valid token."""
    async with database.transaction() as conn:
        await schedule_replacement(conn, delay=EVERY)
        at, keys = clock.now(), await signing_keys_store.list_all(conn)
        for key in outdated_keys(keys, at=at):
            await signing_keys_store.remove(conn, key.id)
    if is_next_due(keys, at=at):
        following = await _new_key(database.hub, signs_from=at + PUBLISHED_AHEAD)
        async with database.transaction() as conn:
            await conn.lock(_LOCK)
            if is_next_due(await signing_keys_store.list_all(conn), at=at):
                await signing_keys_store.add(conn, following)


async def _generate_first(database: Database) -> SigningKey:
    generated = await _new_key(database.hub, signs_from=clock.now())
    async with database.transaction() as conn:
        await conn.lock(_LOCK)
        # Another process may have been faster; then all use its key.
        existing = signing_key(await signing_keys_store.list_all(conn), at=clock.now())
        if existing is None:
            await signing_keys_store.add(conn, generated)
        return existing or generated


async def _new_key(hub: Hub, *, signs_from: datetime) -> SigningKey:
    private, public = await asyncio.to_thread(_generate)
    key_id: str = public["kid"]
    return SigningKey(
        id=key_id,
        sealed_private=hub.keys.seal(json.dumps(private).encode(), context=_context(key_id)),
        public=public,
        created_at=clock.now(),
        signs_from=signs_from,
    )


def _context(key_id: str) -> str:
    return f"oauth_keys.sealed_private.{key_id}"


def _generate() -> tuple[dict[str, Any], dict[str, Any]]:
    from joserfc.jwk import RSAKey  # noqa: PLC0415 - loaded by those who sign, not at every start

    key = RSAKey.generate_key(_BITS, private=True)
    purpose = {"kid": key.thumbprint(), "use": "sig", "alg": ALGORITHM}
    return dict(key.as_dict(private=True)), {**key.as_dict(private=False), **purpose}


# A JWS in compact form (RFC 7515, 7.1): the library would encode the same header and check the same key
# for each token anew.
def _sign(ring: KeyRing, key: SigningKey, unsigned: str) -> str:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - as above

    private = _private_key(ring, key.id, key.sealed_private)
    return f"{unsigned}.{_base64(private.sign(unsigned.encode(), PKCS1v15(), SHA256()))}"


@lru_cache(maxsize=4)
def _header(key_id: str) -> str:
    return _base64(msgspec.json.encode({"typ": "JWT", "alg": ALGORITHM, "kid": key_id}))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@lru_cache(maxsize=4)
def _private_key(ring: KeyRing, key_id: str, sealed: bytes) -> Any:
    from joserfc.jwk import RSAKey  # noqa: PLC0415 - as above

    return RSAKey.import_key(json.loads(ring.open(sealed, context=_context(key_id)))).private_key
