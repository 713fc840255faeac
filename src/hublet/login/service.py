"""Rules of the login by password: limited attempts, the check, and the session that follows."""

from collections.abc import Iterator
from dataclasses import replace

from hublet.accounts.errors import NoPassword, WrongPassword
from hublet.accounts.names import MAX_EMAIL_LENGTH, email_key, name_key
from hublet.accounts.passwords import MAX_LENGTH, hash_password, needs_rehash, verify_password
from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.limits import Limiter, RateLimit
from hublet.login import sessions, store
from hublet.login.errors import LoginRefused, PasswordRefused, TooManyAttempts
from hublet.login.records import Candidate, Session, Visitor


class LoginAttempts:
    """Limit on the passwords that may be tried from one address, under one name, for one account.

    An attempt is counted before it is checked, and taken back if it succeeds. The name counts as
    it was typed, whether or not there is such an account: a refusal does not reveal which accounts
    exist. The account counts under all its names and e-mail addresses, and where its owner changes
    the password.
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
        self._per_account = replace(self._per_name, name="login-account")

    def count(self, *, name: str | None = None, user_id: str | None = None) -> None:
        """Count an attempt; raise TooManyAttempts when there were too many."""
        for policy, key in self._keys(name, user_id):
            verdict = self._limiter.count(policy, key)
            if not verdict.allowed:
                raise TooManyAttempts(verdict.reset_seconds)

    def allows(self, candidate: Candidate) -> bool:
        """Count an attempt on the account that a name led to.

        Whoever is refused must not be told why: that two names share a limit would reveal whose
        address it is.
        """
        return self._limiter.count(self._per_account, candidate.user.id).allowed

    def refund(self, *, name: str | None = None, user_id: str | None = None) -> None:
        """Take back an attempt that succeeded."""
        for policy, key in self._keys(name, user_id):
            self._limiter.refund(policy, key)

    def _keys(self, name: str | None, user_id: str | None) -> Iterator[tuple[RateLimit, str]]:
        yield self._per_address, self._address
        if name is not None:
            yield self._per_name, _attempt_key(name)
        if user_id is not None:
            yield self._per_account, user_id


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

    An unknown name takes as long as a wrong password, and so does an account with too many attempts.
    """
    attempts.count(name=name)
    async with database.read() as reading:
        candidate = await store.find_candidate(reading, name)
    if candidate is not None and not attempts.allows(candidate):
        candidate = None
    verified = await _matching_hash(candidate.password_hash if candidate else None, password)
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
    attempts.refund(name=name, user_id=candidate.user.id)
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
    try:
        user = await _get_user_by_password(database, attempts, session.user_id, current)
    except (WrongPassword, NoPassword):
        raise PasswordRefused from None
    async with database.transaction() as conn:
        # The event that it publishes ends every session, this one too.
        await accounts.set_password(conn, user, new)
        _, value = await sessions.renew(conn, session)
        return value


async def change_password_by_token(
    database: Database, user_id: str, attempts: LoginAttempts, *, current: str, new: str
) -> None:
    """Set another password and end all sessions.

    A token alone is not enough: a stolen one could lock its owner out.
    """
    user = await _get_user_by_password(database, attempts, user_id, current)
    async with database.transaction() as conn:
        await accounts.set_password(conn, user, new)


async def _get_user_by_password(
    database: Database, attempts: LoginAttempts, user_id: str, password: str
) -> User:
    """Return the user whose password it is; raise WrongPassword or NoPassword."""
    async with database.read() as reading:
        user = await accounts.get_user_by_id(reading, user_id)
        hashed = await users.password_hash_of(reading, user_id)
    if hashed is None:
        raise NoPassword
    attempts.count(user_id=user_id)
    if await _matching_hash(hashed, password) is None:
        raise WrongPassword
    attempts.refund(user_id=user_id)
    return user


async def _matching_hash(hashed: str | None, password: str) -> str | None:
    """Return the hash if it is that of the password; None takes as long as a wrong password."""
    hashed = hashed if len(password) <= MAX_LENGTH else None
    return hashed if await verify_password(hashed, password[:MAX_LENGTH]) else None
