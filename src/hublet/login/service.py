"""Rules of signing in, with a password or after a passkey."""

from hublet.accounts import service as accounts
from hublet.accounts.passwords import MAX_LENGTH, hash_password, needs_rehash, verify_password
from hublet.accounts.records import User
from hublet.core.database import Connection, Database
from hublet.login import store
from hublet.login.attempts import Attempts
from hublet.login.errors import LoginRefused, PasswordRefused
from hublet.login.records import Candidate, Session, Visitor
from hublet.login.sessions import service as sessions


async def sign_in(
    database: Database,
    visitor: Visitor,
    current: Session | None,
    attempts: Attempts,
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
    shown = await _shown(candidate, password)
    if candidate is None or shown is None or candidate.user.disabled_at is not None:
        raise LoginRefused
    kept = await hash_password(password) if needs_rehash(shown) else shown
    async with database.transaction() as conn:
        # Somebody may have set another password while this one was checked.
        if not await store.confirm_password(
            conn, candidate.user.id, shown=shown, password_hash=kept
        ):
            raise LoginRefused
        value = await enter(conn, candidate.user, visitor, current)
    attempts.forgive(name=name)
    return value


async def enter(conn: Connection, user: User, visitor: Visitor, current: Session | None) -> str:
    """Let somebody in who has shown who they are; return the value of the session's cookie.

    The browser's session goes on if it is theirs, with another value, and ends if it is not.
    """
    if current is not None and current.user_id == user.id:
        _, value = await sessions.renew(conn, current)
        return value
    if current is not None:
        await sessions.drop(conn, current)
    _, value = await sessions.begin(conn, user, visitor)
    return value


async def change_password(
    database: Database, session: Session, attempts: Attempts, *, current: str, new: str
) -> str:
    """Set another password and end all other sessions; return this one's new value."""
    attempts.count(name=session.user_name)
    async with database.read() as reading:
        candidate = await store.find_candidate(reading, session.user_name)
    if candidate is None or await _shown(candidate, current) is None:
        raise PasswordRefused
    attempts.forgive(name=session.user_name)
    async with database.transaction() as conn:
        # The fact that it publishes ends every session, this one too.
        await accounts.set_password(conn, candidate.user, new)
        _, value = await sessions.renew(conn, session)
        return value


async def _shown(candidate: Candidate | None, password: str) -> str | None:
    """Return the hash that the password fits."""
    hashed = candidate.password_hash if candidate and len(password) <= MAX_LENGTH else None
    return hashed if await verify_password(hashed, password[:MAX_LENGTH]) else None
