"""Password resets: single-use links for who forgot the password, by mail or from the operator."""

import string
from datetime import timedelta

import msgspec

from hublet.accounts.names import MAX_EMAIL_LENGTH, email_key
from hublet.accounts.passwords import check_strength, hash_password
from hublet.accounts.records import User, UserType
from hublet.accounts.users import service as accounts
from hublet.core import queue
from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_text
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.login import store
from hublet.login.errors import ResetLinkBroken

LIFETIME = timedelta(hours=1)
PATH = "/reset-password/"
SEND_RESET_LINK = "login.send-reset-link"

# Mails to one address in an hour, whoever asks for them.
_MOST_PER_MAILBOX = 3
# Whoever stole a token can add an address, but not become the owner with it before the owner, who
# is told of it, can act.
_KNOWN_FOR = timedelta(days=3)
_DIGEST = "password reset"
_TOKEN_LENGTH = 43
_TOKEN_ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRequest:
    """What waits in the queue: an address as it was typed, whether or not an account has it."""

    email: str


class ResetLimits:
    """Limit on the links that one address may ask for, and on the mails to one mailbox."""

    def __init__(self, limiter: Limiter, settings: Settings, *, address: str) -> None:
        quota = settings.login.resets_per_hour
        self._limiter = limiter
        self._address = address
        self._per_address = RateLimit(name="reset-address", quota=quota, window_seconds=3600)
        self._per_mailbox = RateLimit(
            name="reset-mailbox", quota=_MOST_PER_MAILBOX, window_seconds=3600
        )

    def count(self) -> None:
        """Count a request from the address; raise TooManyRequests when there were too many."""
        raise_when_exceeded(self._limiter.count(self._per_address, self._address))

    def allows_mail(self, email: str) -> bool:
        """Count a mail; what is typed counts, so that a refusal reveals nothing about accounts."""
        return self._limiter.count(self._per_mailbox, email_key(email)).allowed


async def request(conn: Connection, limits: ResetLimits, email: str) -> None:
    """Queue a link for whoever has this address.

    Whether an account has it is not looked up here, so neither the answer nor its time can tell.
    """
    limits.count()
    email = email.strip()[:MAX_EMAIL_LENGTH]
    if limits.allows_mail(email):
        body = msgspec.json.encode(ResetRequest(email=email)).decode()
        await queue.add(conn, queue.NewTask(kind=SEND_RESET_LINK, body=body, urgent=True))


async def find_user(conn: Reader, email: str) -> User | None:
    """Return who may reset a password by a mail to this address, which is a verified one.

    An account without a password, such as one that a directory manages, does not get one this way.
    """
    candidate = await store.find_reset_candidate(conn, email, known_since=now() - _KNOWN_FOR)
    if candidate is None or candidate.password_hash is None:
        return None
    return candidate.user if _is_eligible(candidate.user) else None


async def create_link(conn: Connection, user: User) -> str:
    """Return a new link for a user; the one before it does not work any more."""
    token = random_text(_TOKEN_LENGTH, _TOKEN_ALPHABET)
    digest = conn.hub.keys.digest(_DIGEST, token).hex()
    await store.put_password_reset(conn, user.id, digest=digest, expires_at=now() + LIFETIME)
    return f"{conn.hub.settings.base_url}{PATH}{token}"


async def get_user(conn: Reader, token: str) -> User:
    """Return whose link it is, as long as it works."""
    digests = [digest.hex() for digest in conn.hub.keys.digests(_DIGEST, token)]
    user = await store.find_password_reset(conn, digests)
    if user is None or not _is_eligible(user):
        raise ResetLinkBroken
    return user


async def reset(database: Database, token: str, password: str) -> User:
    """Set another password by a link, which is used up, and end all sessions."""
    async with database.read() as reading:
        user = await get_user(reading, token)
    check_strength(password, name=user.name)
    # Before the transaction: a hash takes as long as many of them.
    password_hash = await hash_password(password)
    async with database.transaction() as conn:
        # Somebody else may have used the link meanwhile.
        user = await get_user(conn, token)
        if not await store.remove_password_reset(conn, user.id):
            raise ResetLinkBroken
        await accounts.set_password_hash(conn, user, password_hash)
    return user


def _is_eligible(user: User) -> bool:
    return user.disabled_at is None and user.type is UserType.person
