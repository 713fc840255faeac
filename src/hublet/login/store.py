"""SQL of sessions, passkeys, password resets, and the users who sign in.

Of cookies and links only digests are stored.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from hublet.accounts.names import email_key, name_key
from hublet.accounts.organizations.security_store import limits_of_user
from hublet.accounts.records import User
from hublet.accounts.users.store import USER_COLUMNS, user_record
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.login.records import Candidate, Passkey, Session

_SESSION_COLUMNS = (
    "s.id, s.digest, s.user_id, u.name AS user_name, u.is_admin, s.created_at, s.authenticated_at, "
    "s.last_used_at, s.expires_at, s.address, s.agent, "
    # Whether an organization of the user is reached from its own networks alone.
    "EXISTS (SELECT 1 FROM memberships w JOIN organization_networks n "
    "ON n.organization_id = w.organization_id AND n.is_restricted "
    "WHERE w.user_id = s.user_id) AS has_limits"
)
_ALIVE = "s.expires_at > $2 AND s.last_used_at > $3 AND u.disabled_at IS NULL"
_PASSKEY_COLUMNS = (
    "id, credential_id, user_id, name, public_key, sign_count, created_at, last_used_at"
)


async def find_candidate(conn: Reader, name: str) -> Candidate | None:
    """Return the user of this name or verified e-mail address; no name has an @ in it."""
    row = await conn.fetch_one(
        f"""
        SELECT {USER_COLUMNS}, u.password_hash
        FROM emails e JOIN users u ON u.id = e.user_id
        WHERE e.address_key = $1 AND e.verified_at IS NOT NULL
        """
        if "@" in name
        else f"""
        SELECT {USER_COLUMNS}, u.password_hash
        FROM names n JOIN users u ON u.id = n.account_id WHERE n.key = $1
        """,
        email_key(name) if "@" in name else name_key(name),
    )
    return Candidate(user=user_record(row), password_hash=row["password_hash"]) if row else None


async def confirm_password(
    conn: Connection, user_id: str, *, verified_hash: str, password_hash: str
) -> bool:
    """Store a hash of the verified password; False when the password was changed meanwhile."""
    return await conn.execute(
        "UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3",
        password_hash, user_id, verified_hash,
    ) == 1  # fmt: skip


async def put_session(conn: Connection, session: Session) -> None:
    """Store a session, new or with another value."""
    await conn.execute(
        """
        INSERT INTO sessions (id, digest, user_id, created_at, authenticated_at, last_used_at,
                              expires_at, address, agent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (id) DO UPDATE SET
            digest = excluded.digest, authenticated_at = excluded.authenticated_at,
            last_used_at = excluded.last_used_at
        """,
        session.id, session.digest, session.user_id, to_micros(session.created_at),
        to_micros(session.authenticated_at), to_micros(session.last_used_at),
        to_micros(session.expires_at), session.address, session.agent,
    )  # fmt: skip


async def find_session(
    conn: Reader, digests: Sequence[str], *, used_since: datetime
) -> Session | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_SESSION_COLUMNS} FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.digest IN each($1) AND {_ALIVE}
        """,
        json.dumps(list(digests)), micros(), to_micros(used_since),
    )  # fmt: skip
    if row is None:
        return None
    session = _session_record(row)
    if not row["has_limits"]:
        return session
    return replace(session, limits=tuple(await limits_of_user(conn, session.user_id)))


async def list_sessions(conn: Reader, *, user_id: str, used_since: datetime) -> list[Session]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_SESSION_COLUMNS} FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.user_id = $1 AND {_ALIVE} ORDER BY s.last_used_at DESC, s.id DESC
        """,
        user_id, micros(), to_micros(used_since),
    )  # fmt: skip
    return [_session_record(row) for row in rows]


async def set_session_used(conn: Connection, session_id: str) -> None:
    await conn.execute("UPDATE sessions SET last_used_at = $1 WHERE id = $2", micros(), session_id)


async def remove_session(conn: Connection, session_id: str, *, user_id: str) -> bool:
    """Remove a user's session; False when there is none of this id."""
    return await conn.execute(
        "DELETE FROM sessions WHERE id = $1 AND user_id = $2", session_id, user_id
    ) == 1  # fmt: skip


async def remove_sessions_of(conn: Connection, *, user_id: str, except_for: str = "") -> None:
    """Remove the sessions of a user, except for the one of this id."""
    await conn.execute("DELETE FROM sessions WHERE user_id = $1 AND id <> $2", user_id, except_for)


async def remove_expired_sessions(conn: Connection) -> None:
    await conn.execute("DELETE FROM sessions WHERE expires_at <= $1", micros())


def _session_record(row: Row) -> Session:
    return Session(
        id=row["id"],
        digest=row["digest"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        is_admin=bool(row["is_admin"]),
        created_at=from_micros(row["created_at"]),
        authenticated_at=from_micros(row["authenticated_at"]),
        last_used_at=from_micros(row["last_used_at"]),
        expires_at=from_micros(row["expires_at"]),
        address=row["address"],
        agent=row["agent"],
    )


async def add_passkey(conn: Connection, passkey: Passkey) -> bool:
    """Add a passkey; False when an account has it already."""
    return await conn.execute(
        """
        INSERT INTO passkeys (id, credential_id, user_id, name, public_key, sign_count, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
        """,
        passkey.id, passkey.credential_id, passkey.user_id, passkey.name, passkey.public_key,
        passkey.sign_count, to_micros(passkey.created_at),
    ) == 1  # fmt: skip


async def find_passkey(conn: Reader, credential_id: str) -> Passkey | None:
    row = await conn.fetch_one(
        f"SELECT {_PASSKEY_COLUMNS} FROM passkeys WHERE credential_id = $1", credential_id
    )
    return _passkey_record(row) if row else None


async def list_passkeys(conn: Reader, *, user_id: str) -> list[Passkey]:
    rows = await conn.fetch_all(
        f"SELECT {_PASSKEY_COLUMNS} FROM passkeys WHERE user_id = $1 ORDER BY id", user_id
    )
    return [_passkey_record(row) for row in rows]


async def list_with_passkey(conn: Reader, user_ids: Iterable[str]) -> set[str]:
    """Return those of these users who have a passkey."""
    rows = await conn.fetch_all(
        "SELECT DISTINCT user_id FROM passkeys WHERE user_id IN each($1)",
        json.dumps(list(user_ids)),
    )
    return {row["user_id"] for row in rows}


async def last_visits_of(conn: Reader, user_ids: Iterable[str]) -> dict[str, datetime]:
    """Return when each of these users last used a session that is still known."""
    rows = await conn.fetch_all(
        """
        SELECT user_id, max(last_used_at) AS at FROM sessions WHERE user_id IN each($1)
        GROUP BY user_id
        """,
        json.dumps(list(user_ids)),
    )
    return {row["user_id"]: from_micros(row["at"]) for row in rows}


async def set_passkey_used(conn: Connection, passkey: Passkey, *, sign_count: int) -> bool:
    """Store a use; False when the passkey was removed or used elsewhere meanwhile."""
    return await conn.execute(
        """
        UPDATE passkeys SET sign_count = $1, last_used_at = $2
        WHERE id = $3 AND sign_count = $4
        """,
        sign_count, micros(), passkey.id, passkey.sign_count,
    ) == 1  # fmt: skip


async def set_passkey_name(conn: Connection, passkey_id: str, name: str, *, user_id: str) -> bool:
    return await conn.execute(
        "UPDATE passkeys SET name = $1 WHERE id = $2 AND user_id = $3", name, passkey_id, user_id
    ) == 1  # fmt: skip


async def remove_passkey(conn: Connection, passkey_id: str, *, user_id: str) -> bool:
    return await conn.execute(
        "DELETE FROM passkeys WHERE id = $1 AND user_id = $2", passkey_id, user_id
    ) == 1  # fmt: skip


async def use_challenge(conn: Connection, digest: str, *, expires_at: datetime) -> bool:
    """Mark a challenge as used; False when it was used before."""
    await conn.execute("DELETE FROM passkey_challenges WHERE expires_at <= $1", micros())
    return await conn.execute(
        """
        INSERT INTO passkey_challenges (digest, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING
        """,
        digest, to_micros(expires_at),
    ) == 1  # fmt: skip


def _passkey_record(row: Row) -> Passkey:
    return Passkey(
        id=row["id"],
        credential_id=row["credential_id"],
        user_id=row["user_id"],
        name=row["name"],
        public_key=bytes(row["public_key"]),
        sign_count=row["sign_count"],
        created_at=from_micros(row["created_at"]),
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
    )


async def put_password_reset(
    conn: Connection, user_id: str, *, digest: str, expires_at: datetime
) -> None:
    """Store the link of a user in place of the one before."""
    await conn.execute(
        """
        INSERT INTO password_resets (user_id, digest, expires_at) VALUES ($1, $2, $3)
        ON CONFLICT (user_id) DO UPDATE SET
            digest = excluded.digest, expires_at = excluded.expires_at
        """,
        user_id, digest, to_micros(expires_at),
    )  # fmt: skip


async def find_reset_candidate(
    conn: Reader, email: str, *, known_since: datetime
) -> Candidate | None:
    """Return the user of an address that was verified before this moment, or of a newer account."""
    row = await conn.fetch_one(
        f"""
        SELECT {USER_COLUMNS}, u.password_hash FROM emails e JOIN users u ON u.id = e.user_id
        WHERE e.address_key = $1 AND e.verified_at IS NOT NULL
          AND (e.verified_at <= $2 OR u.created_at > $2)
        """,
        email_key(email), to_micros(known_since),
    )  # fmt: skip
    return Candidate(user=user_record(row), password_hash=row["password_hash"]) if row else None


async def find_password_reset(conn: Reader, digests: Sequence[str]) -> User | None:
    """Return the user of a link that has not expired."""
    row = await conn.fetch_one(
        f"""
        SELECT {USER_COLUMNS} FROM password_resets r JOIN users u ON u.id = r.user_id
        WHERE r.digest IN each($1) AND r.expires_at > $2
        """,
        json.dumps(list(digests)), micros(),
    )  # fmt: skip
    return user_record(row) if row else None


async def remove_password_reset(conn: Connection, user_id: str) -> bool:
    """Remove the link of a user; False when there is none."""
    return await conn.execute("DELETE FROM password_resets WHERE user_id = $1", user_id) == 1
