"""Rules of browser sessions: how long they last, and what ends them."""

import string
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, User
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id, random_text
from hublet.login import store
from hublet.login.errors import SessionNotFound
from hublet.login.records import Session, Visitor
from hublet.tokens.format import TokenKind
from hublet.tokens.records import ALL_SCOPES, Caller, Grants, TokenRecord, TokenRole

_DIGEST = "session"
_VALUE_LENGTH = 43
_VALUE_ALPHABET = string.ascii_letters + string.digits
# A session in use is written to once in this time, not with every page.
_USE_SAVED_EVERY = timedelta(minutes=5)
_LONGEST_AGENT = 300


async def begin(conn: Connection, user: User, visitor: Visitor) -> tuple[Session, str]:
    """Begin a session; return it with the value of its cookie, which is not stored."""
    value = random_text(_VALUE_LENGTH, _VALUE_ALPHABET)
    moment = now()
    session = Session(
        id=new_object_id(),
        digest=_digest(conn.hub, value),
        user_id=user.id,
        user_name=user.name,
        is_admin=user.is_admin,
        created_at=moment,
        authenticated_at=moment,
        last_used_at=moment,
        expires_at=moment + timedelta(days=conn.hub.settings.login.session_days),
        address=visitor.address,
        agent=None if visitor.agent is None else visitor.agent[:_LONGEST_AGENT],
    )
    await store.remove_expired_sessions(conn)
    await store.put_session(conn, session)
    await audit.record_sign_in(conn, Actor(id=user.id, name=user.name, address=visitor.address))
    return session, value


async def renew(conn: Connection, session: Session) -> tuple[Session, str]:
    """Give a session another value, because its person has signed in again.

    It stays the same session, even if it was removed in between, and lasts no longer than before.
    """
    value = random_text(_VALUE_LENGTH, _VALUE_ALPHABET)
    moment = now()
    renewed = replace(
        session, digest=_digest(conn.hub, value), authenticated_at=moment, last_used_at=moment
    )
    await store.put_session(conn, renewed)
    return renewed, value


async def find(database: Database, value: str) -> Session | None:
    """Return the session of this cookie unless it has ended, and store that it is in use."""
    digests = [digest.hex() for digest in database.hub.keys.digests(_DIGEST, value)]
    async with database.read() as conn:
        session = await store.find_session(conn, digests, used_since=_used_since(conn.hub))
    if session is not None and now() - session.last_used_at > _USE_SAVED_EVERY:
        async with database.transaction() as writing:
            await store.set_session_used(writing, session.id)
    return session


def caller_of(session: Session) -> Caller:
    """Return the caller that acts by a session: with all rights of its person, for one request.

    Pages call the same services as the API does, which ask what a token may do.
    """
    token = TokenRecord(
        id=session.id,
        kind=TokenKind.access,
        user_id=session.user_id,
        name="",
        role=TokenRole.write,
        grants=Grants(inbox=True),
        hint="",
        created_at=session.created_at,
    )
    return Caller(
        user_id=session.user_id,
        user_name=session.user_name,
        is_admin=session.is_admin,
        token=token,
        scopes=ALL_SCOPES,
        blocked=session.limits,
    )


async def list_of(conn: Reader, user_id: str) -> Sequence[Session]:
    """List the sessions of a user that work, the one used last first."""
    return await store.list_sessions(conn, user_id=user_id, used_since=_used_since(conn.hub))


async def end(conn: Connection, session_id: str, *, user_id: str) -> None:
    if not await store.remove_session(conn, session_id, user_id=user_id):
        raise SessionNotFound(session_id)


async def drop(conn: Connection, session: Session) -> None:
    """End a session, also when it has ended already."""
    await store.remove_session(conn, session.id, user_id=session.user_id)


async def end_all(conn: Connection, *, user_id: str, except_for: Session | None = None) -> None:
    """End the sessions of a user, all or all but one."""
    spared = "" if except_for is None else except_for.id
    await store.remove_sessions_of(conn, user_id=user_id, except_for=spared)


def _digest(hub: Hub, value: str) -> str:
    return hub.keys.digest(_DIGEST, value).hex()


def _used_since(hub: Hub) -> datetime:
    return now() - timedelta(days=hub.settings.login.idle_days)
