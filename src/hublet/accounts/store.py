"""SQL of users, their names and addresses."""

from collections.abc import Sequence

from hublet.accounts.names import email_key, name_key
from hublet.accounts.records import Email, User, UserType
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row

# Where users are called `u`; `user_record` reads it.
USER = (
    "u.id, u.name, u.fullname, u.type, u.organization_id, u.is_admin, u.created_at, u.disabled_at"
)
# `email_record` reads it.
EMAIL = "id, user_id, address, is_primary, created_at, verified_at"


async def take_name(conn: Connection, name: str, *, account_id: str, type: str) -> bool:  # noqa: A002 - the column
    """Reserve a name for a user or an organization; False when it is taken."""
    return await conn.execute(
        "INSERT INTO names (key, account_id, type) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        name_key(name), account_id, type,
    ) == 1  # fmt: skip


async def add(conn: Connection, user: User, *, password_hash: str | None) -> None:
    await conn.execute(
        """
        INSERT INTO users
            (id, name, fullname, type, organization_id, is_admin, created_at, password_hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        user.id, user.name, user.fullname, user.type, user.organization_id, user.is_admin,
        to_micros(user.created_at), password_hash,
    )  # fmt: skip


async def find(conn: Reader, user_id: str) -> User | None:
    row = await conn.fetch_one(f"SELECT {USER} FROM users u WHERE u.id = $1", user_id)
    return user_record(row) if row else None


async def find_by_name(conn: Reader, name: str) -> User | None:
    row = await conn.fetch_one(
        f"SELECT {USER} FROM names n JOIN users u ON u.id = n.account_id WHERE n.key = $1",
        name_key(name),
    )
    return user_record(row) if row else None


async def list_all(conn: Reader, *, after: str = "", limit: int = 100) -> list[User]:
    rows = await conn.fetch_all(
        f"SELECT {USER} FROM users u WHERE u.id > $1 ORDER BY u.id LIMIT $2", after, limit
    )
    return [user_record(row) for row in rows]


async def count_public_repos(conn: Reader, owner_id: str) -> dict[str, int]:
    """Count what everybody may see of an owner's repositories, by their type."""
    rows = await conn.fetch_all(
        """
        SELECT type, count(*) AS count FROM repos
        WHERE owner_id = $1 AND visibility = 'public' GROUP BY type
        """,
        owner_id,
    )
    return {row["type"]: row["count"] for row in rows}


async def count_public_likes(conn: Reader, user_id: str) -> int:
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM likes l JOIN repos r ON r.id = l.repo_id
        WHERE l.user_id = $1 AND r.visibility = 'public'
        """,
        user_id,
    )
    return count


async def has_administrator(conn: Reader) -> bool:
    return await conn.fetch_one("SELECT 1 FROM users WHERE is_admin LIMIT 1") is not None


async def count_other_administrators(conn: Reader, user_id: str) -> int:
    """Count the hub administrators, but for this user, whose accounts are not disabled."""
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM users WHERE is_admin AND disabled_at IS NULL AND id <> $1", user_id
    )
    return count


async def set_administrator(conn: Connection, user_id: str, *, is_admin: bool) -> None:
    await conn.execute("UPDATE users SET is_admin = $1 WHERE id = $2", is_admin, user_id)


async def set_fullname(conn: Connection, user_id: str, fullname: str) -> None:
    await conn.execute("UPDATE users SET fullname = $1 WHERE id = $2", fullname, user_id)


async def set_disabled(conn: Connection, user_id: str, *, disabled: bool) -> None:
    await conn.execute(
        "UPDATE users SET disabled_at = $1 WHERE id = $2", micros() if disabled else None, user_id
    )


async def password_hash_of(conn: Reader, user_id: str) -> str | None:
    found: str | None = await conn.fetch_value(
        "SELECT password_hash FROM users WHERE id = $1", user_id
    )
    return found


async def set_password_hash(conn: Connection, user_id: str, password_hash: str | None) -> None:
    await conn.execute("UPDATE users SET password_hash = $1 WHERE id = $2", password_hash, user_id)


async def add_email(conn: Connection, email: Email) -> bool:
    """Add an address; False when somebody has it already."""
    return await conn.execute(
        """
        INSERT INTO emails (id, user_id, address, address_key, is_primary, created_at, verified_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
        """,
        email.id, email.user_id, email.address, email_key(email.address), email.is_primary,
        to_micros(email.created_at), to_micros(email.verified_at) if email.verified_at else None,
    ) == 1  # fmt: skip


async def list_emails(conn: Reader, *, user_id: str) -> list[Email]:
    rows = await conn.fetch_all(
        f"SELECT {EMAIL} FROM emails WHERE user_id = $1 ORDER BY id", user_id
    )
    return [email_record(row) for row in rows]


def user_record(row: Row) -> User:
    return User(
        id=row["id"],
        name=row["name"],
        fullname=row["fullname"],
        type=UserType(row["type"]),
        organization_id=row["organization_id"],
        is_admin=bool(row["is_admin"]),
        created_at=from_micros(row["created_at"]),
        disabled_at=from_micros(row["disabled_at"]) if row["disabled_at"] else None,
    )


def email_record(row: Row) -> Email:
    return Email(
        id=row["id"],
        user_id=row["user_id"],
        address=row["address"],
        is_primary=bool(row["is_primary"]),
        created_at=from_micros(row["created_at"]),
        verified_at=from_micros(row["verified_at"]) if row["verified_at"] else None,
    )


async def whoami_rows(conn: Reader, user_id: str) -> Sequence[Row]:
    """Return the user with the primary address, once per membership (or once without any)."""
    return await conn.fetch_all(
        """
        SELECT u.id, u.name, u.fullname, u.type, e.address AS email,
               e.verified_at AS email_verified_at, m.role, o.id AS organization_id,
               o.name AS organization_name, o.fullname AS organization_fullname, o.plan
        FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        LEFT JOIN memberships m ON m.user_id = u.id
        LEFT JOIN organizations o ON o.id = m.organization_id
        WHERE u.id = $1 ORDER BY o.id
        """,
        user_id,
    )
