"""Rules of the login by password: limited attempts, the check, and the session that follows."""

from hublet.accounts.names import MAX_EMAIL_LENGTH, email_key, name_key
from hublet.accounts.passwords import MAX_LENGTH, hash_password, needs_rehash, verify_password
from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.limits import Limiter, RateLimit
from hublet.login import sessions, store
from hublet.login.errors import LoginRefused, PasswordRefused, TooManyAttempts
from hublet.login.records import Candidate, Session, Visitor


class LoginAttempts:
    """Limit on the login attempts of one address and of one name.

    An attempt is counted before it is checked, and taken back if it succeeds. The name counts as
    it was typed, whether or not there is such an account: a refusal does not reveal which accounts
    exist.
    """

    def __init__(self, limiter: Limiter, settings: Settings, *, address: str) -> None:
        login = settings.login
        self._limiter = limiter
        self._address = address
        self._per_address = RateLimit(
            name="login-address", quota=login.address_attempts, window_seconds=login.window_seconds
        )
        self._per_name = RateLimit(
            name="login-name", quota=login.account_attempts, window_seconds=login.window_seconds
        )

    def count(self, *, name: str | None = None) -> None:
        """Count an attempt; raise TooManyAttempts when there were too many."""
        self._count(self._per_address, self._address)
        if name is not None:
            self._count(self._per_name, _attempt_key(name))

    def refund(self, *, name: str | None = None) -> None:
        """Take back an attempt that succeeded."""
        self._limiter.refund(self._per_address, self._address)
        if name is not None:
            self._limiter.refund(self._per_name, _attempt_key(name))

    def _count(self, policy: RateLimit, key: str) -> None:
        verdict = self._limiter.count(policy, key)
        if not verdict.allowed:
            raise TooManyAttempts(verdict.reset_seconds)


def _attempt_key(name: str) -> str:
    # Normalized as for the look-up, or another spelling would have a limit of its own. What is longer
    # than any name or address is not kept in memory whole.
    name = name[:MAX_EMAIL_LENGTH]
    return email_key(name) if "@" in name else name_key(name)


async def sign_in(
    database: Database,
    visitor: Visitor,
    current: Session | None,
    attempts: LoginAttempts,
    *,
    name: str,
    password: str,
) -> str:
    """Sign in by name or e-mail address; return the value of the session's cookie.

    An unknown name takes as long as a wrong password.
    """
    attempts.count(name=name)
    async with database.read() as reading:
        candidate = await store.find_candidate(reading, name)
    verified = await _matching_hash(candidate, password)
    if candidate is None or verified is None or candidate.user.disabled_at is not None:
        raise LoginRefused
    new_hash = await hash_password(password) if needs_rehash(verified) else verified
    async with database.transaction() as conn:
        # The password may have been changed while it was verified.
        if not await store.confirm_password(
            conn, candidate.user.id, verified_hash=verified, password_hash=new_hash
        ):
            raise LoginRefused
        value = await enter_session(conn, candidate.user, visitor, current)
    attempts.refund(name=name)
    return value


async def enter_session(
    conn: Connection, user: User, visitor: Visitor, current: Session | None
) -> str:
    """Begin or renew the session of an authenticated user; return the value of its cookie.

    The browser's current session is renewed if it is the user's own, and ends if it is not.
    """
    if current is not None and current.user_id == user.id:
        _, value = await sessions.renew(conn, current)
        return value
    if current is not None:
        await sessions.drop(conn, current)
    _, value = await sessions.begin(conn, user, visitor)
    return value


async def change_password(
    database: Database, session: Session, attempts: LoginAttempts, *, current: str, new: str
) -> str:
    """Set another password and end all other sessions; return the new value of this one's cookie."""
    attempts.count(name=session.user_name)
    async with database.read() as reading:
        candidate = await store.find_candidate(reading, session.user_name)
    if candidate is None or await _matching_hash(candidate, current) is None:
        raise PasswordRefused
    attempts.refund(name=session.user_name)
    async with database.transaction() as conn:
        # The event that it publishes ends every session, this one too.
        await accounts.set_password(conn, candidate.user, new)
        _, value = await sessions.renew(conn, session)
        return value


async def _matching_hash(candidate: Candidate | None, password: str) -> str | None:
    """Return the candidate's hash if it is that of the password."""
    hashed = candidate.password_hash if candidate and len(password) <= MAX_LENGTH else None
    return hashed if await verify_password(hashed, password[:MAX_LENGTH]) else None
