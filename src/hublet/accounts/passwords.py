"""Passwords: hashing, verification, strength and generation."""

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from hublet.accounts.errors import WeakPassword
from hublet.core import ids

MIN_LENGTH = 8
MAX_LENGTH = 256

# The OWASP profile: 19 MiB, two passes, one lane.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

# A pool of its own with two threads: log-ins neither take the whole machine nor fill the default
# pool, and a caller who disconnects does not free a thread whose hash is still being computed.
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="passwords")

# A hash that no password has, with the same parameters as the real ones.
_UNKNOWN_USER_HASH = "$argon2id$v=19$m=19456,t=2,p=1$ORKA6w3H2APP/6GjBAhk3A$xRJNW0UpiW5AhqDR1fGZbAexCCBr3nBp/MsTJhdzKWA"

# Without 0 1 i l o, which are easily confused when read aloud or copied by hand.
_READABLE_CHARACTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_GROUPS = 4
_GROUP_LENGTH = 4


async def hash_password(text: str) -> str:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _hasher.hash, _octets(text))


async def verify_password(hashed: str | None, text: str) -> bool:
    """Check a password; None, for an unknown user, takes the same time and is False."""
    loop = asyncio.get_running_loop()
    matches = await loop.run_in_executor(
        _threads, _matches, hashed or _UNKNOWN_USER_HASH, _octets(text)
    )
    return matches and hashed is not None


def needs_rehash(hashed: str) -> bool:
    """Tell whether the hash was made with other parameters than today's."""
    return _hasher.check_needs_rehash(hashed)


def check_strength(text: str, *, name: str) -> None:
    """Refuse with WeakPassword what is too short, too long, or the name of its user."""
    if len(text) < MIN_LENGTH:
        raise WeakPassword(f"A password has at least {MIN_LENGTH} characters.")
    if len(text) > MAX_LENGTH:
        raise WeakPassword(f"A password has at most {MAX_LENGTH} characters.")
    if text.casefold() == name.casefold():
        raise WeakPassword("A password is not the name of its user.")


def new_password() -> str:
    """Return a password of 79 bits in groups, such as `k3nv-8wqd-ypx2-hm7t`."""
    return "-".join(ids.random_text(_GROUP_LENGTH, _READABLE_CHARACTERS) for _ in range(_GROUPS))


def _matches(hashed: str, octets: bytes) -> bool:
    try:
        return _hasher.verify(hashed, octets)
    except VerifyMismatchError:
        return False


def _octets(text: str) -> bytes:
    # Another keyboard may send the same letters in another normal form (RFC 8265, 4.2).
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
