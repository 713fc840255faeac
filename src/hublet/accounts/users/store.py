"""SQL of users: their names, e-mail addresses, memberships, followers and avatars."""

import json
from collections.abc import Iterable, Sequence

from hublet.accounts import name_parts_store
from hublet.accounts.names import email_key, name_key
from hublet.accounts.records import (
    AccountAvatar,
    AvatarImage,
    DefaultVisibility,
    Membership,
    Organization,
    OrganizationPlan,
    Role,
    User,
    UserEmail,
    UserType,
)
from hublet.core import totals
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row

# For queries that name the table `u`; `user_record` reads the row.
USER_COLUMNS = (
    "u.id, u.name, u.fullname, u.type, u.organization_id, u.is_admin, u.created_at, u.disabled_at"
)
# For queries that name the table `o`; `organization_record` reads the row.
ORGANIZATION_COLUMNS = "o.id, o.name, o.fullname, o.plan, o.created_at, o.default_visibility"
# Trusted publishers have a row, because they commit, but they are nobody's account.
ACCOUNTS_ONLY = "NOT (u.type = 'service-account' AND u.organization_id IS NULL)"
# `email_record` reads the row.
EMAIL_COLUMNS = "id, user_id, address, is_primary, created_at, verified_at"


async def reserve_name(conn: Connection, name: str, *, account_id: str, type: str) -> bool:  # noqa: A002 - the column
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
    names = {name_parts_store.fold(name) for name in (user.name, user.fullname)}
    await name_parts_store.add(conn, name_parts_store.USERS, names, id=user.id)


async def find(conn: Reader, user_id: str) -> User | None:
    row = await conn.fetch_one(f"SELECT {USER_COLUMNS} FROM users u WHERE u.id = $1", user_id)
    return user_record(row) if row else None


async def list_by_ids(conn: Reader, user_ids: Iterable[str]) -> list[User]:
    """Return those of these users who are persons and not disabled."""
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM users u
        WHERE u.id IN each($1) AND u.disabled_at IS NULL AND u.type = $2
        """,
        json.dumps(list(user_ids)), UserType.person,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def find_by_name(conn: Reader, name: str) -> User | None:
    row = await conn.fetch_one(
        f"SELECT {USER_COLUMNS} FROM names n JOIN users u ON u.id = n.account_id WHERE n.key = $1",
        name_key(name),
    )
    return user_record(row) if row else None


async def list_all(conn: Reader, *, after: str = "", limit: int = 100) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM users u WHERE u.id > $1 AND {ACCOUNTS_ONLY}
        ORDER BY u.id LIMIT $2
        """,
        after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def count_public_repos(conn: Reader, owner_id: str) -> dict[str, int]:
    """Count the public repositories of an owner, by type."""
    return await totals.read_parts(conn, "public_repos", owner_id)


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
    # The lock keeps another change of it from the time between.
    row = await conn.fetch_one(
        "SELECT u.name, u.fullname FROM users u WHERE u.id = $1 /* lock u */", user_id
    )
    if row is None:
        return
    await conn.execute("UPDATE users SET fullname = $1 WHERE id = $2", fullname, user_id)
    name, before, after = (
        name_parts_store.fold(each) for each in (row["name"], row["fullname"], fullname)
    )
    gone = name_parts_store.parts_of([before]) - name_parts_store.parts_of([name, after])
    await name_parts_store.remove(conn, [name_parts_store.USERS], gone, id=user_id)
    await name_parts_store.add(conn, name_parts_store.USERS, [after], id=user_id)


async def set_disabled(conn: Connection, user_id: str, *, disabled: bool) -> None:
    await conn.execute(
        "UPDATE users SET disabled_at = $1 WHERE id = $2", micros() if disabled else None, user_id
    )


async def password_hash_of(conn: Reader, user_id: str) -> str | None:
    password_hash: str | None = await conn.fetch_value(
        "SELECT password_hash FROM users WHERE id = $1", user_id
    )
    return password_hash


async def set_password_hash(conn: Connection, user_id: str, password_hash: str | None) -> None:
    await conn.execute("UPDATE users SET password_hash = $1 WHERE id = $2", password_hash, user_id)


async def add_email(conn: Connection, email: UserEmail) -> bool:
    """Add an address; False when it belongs to an account already."""
    return await conn.execute(
        """
        INSERT INTO emails (id, user_id, address, address_key, is_primary, created_at, verified_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
        """,
        email.id, email.user_id, email.address, email_key(email.address), email.is_primary,
        to_micros(email.created_at), to_micros(email.verified_at) if email.verified_at else None,
    ) == 1  # fmt: skip


async def list_emails(conn: Reader, *, user_id: str) -> list[UserEmail]:
    rows = await conn.fetch_all(
        f"SELECT {EMAIL_COLUMNS} FROM emails WHERE user_id = $1 ORDER BY id", user_id
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


def organization_record(row: Row) -> Organization:
    return Organization(
        id=row["id"],
        name=row["name"],
        fullname=row["fullname"],
        plan=OrganizationPlan(row["plan"]),
        created_at=from_micros(row["created_at"]),
        default_visibility=DefaultVisibility(row["default_visibility"]),
    )


def email_record(row: Row) -> UserEmail:
    return UserEmail(
        id=row["id"],
        user_id=row["user_id"],
        address=row["address"],
        is_primary=bool(row["is_primary"]),
        created_at=from_micros(row["created_at"]),
        verified_at=from_micros(row["verified_at"]) if row["verified_at"] else None,
    )


async def memberships_of(conn: Reader, *, user_id: str) -> list[Membership]:
    rows = await conn.fetch_all(
        f"""
        SELECT {ORGANIZATION_COLUMNS}, m.role FROM memberships m
        JOIN organizations o ON o.id = m.organization_id
        WHERE m.user_id = $1 ORDER BY o.id
        """,
        user_id,
    )
    return [
        Membership(organization=organization_record(row), role=Role(row["role"])) for row in rows
    ]


async def find_organization_with_role(
    conn: Reader, name: str, *, user_id: str
) -> tuple[Organization, Role | None] | None:
    """Return the organization, and the role that a user has in it."""
    row = await conn.fetch_one(
        f"""
        SELECT {ORGANIZATION_COLUMNS}, m.role FROM names n JOIN organizations o ON o.id = n.account_id
        LEFT JOIN memberships m ON m.organization_id = o.id AND m.user_id = $2
        WHERE n.key = $1
        """,
        name_key(name), user_id,
    )  # fmt: skip
    if row is None:
        return None
    return organization_record(row), Role(row["role"]) if row["role"] else None


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


async def add_follow(conn: Connection, *, follower_id: str, account_id: str) -> bool:
    """Add a follower; False when it is one already."""
    return await conn.execute(
        """
        INSERT INTO follows (follower_id, account_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        follower_id, account_id, micros(),
    ) == 1  # fmt: skip


async def remove_follow(conn: Connection, *, follower_id: str, account_id: str) -> None:
    await conn.execute(
        "DELETE FROM follows WHERE follower_id = $1 AND account_id = $2", follower_id, account_id
    )


async def has_follow(conn: Reader, *, follower_id: str, account_id: str) -> bool:
    row = await conn.fetch_one(
        "SELECT 1 FROM follows WHERE follower_id = $1 AND account_id = $2",
        follower_id, account_id,
    )  # fmt: skip
    return row is not None


async def count_followers(conn: Reader, *, account_id: str) -> int:
    """Count the followers of an account who are not disabled."""
    return await totals.read_difference(conn, "followers", "disabled_followers", account_id)


async def count_followed_users(conn: Reader, *, follower_id: str) -> int:
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM follows f JOIN users u ON u.id = f.account_id
        WHERE f.follower_id = $1 AND u.disabled_at IS NULL
        """,
        follower_id,
    )
    return count


async def count_followers_of(conn: Reader, account_ids: Iterable[str]) -> dict[str, int]:
    """Count the followers of accounts by id, disabled ones too; none for who has none."""
    found = await totals.read_many(conn, ["followers"], account_ids)
    return {account_id: count for (_, account_id), count in found.items()}


async def list_followers(
    conn: Reader, *, account_id: str, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM follows f JOIN users u ON u.id = f.follower_id
        WHERE f.account_id = $1 AND f.follower_id > $2 AND u.disabled_at IS NULL
        ORDER BY f.follower_id LIMIT $3
        """,
        account_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_followed_users(
    conn: Reader, *, follower_id: str, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM follows f JOIN users u ON u.id = f.account_id
        WHERE f.follower_id = $1 AND f.account_id > $2 AND u.disabled_at IS NULL
        ORDER BY f.account_id LIMIT $3
        """,
        follower_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_followed_among(
    conn: Reader, *, follower_id: str, account_ids: Iterable[str]
) -> set[str]:
    """Return those of these accounts that a user follows."""
    rows = await conn.fetch_all(
        "SELECT account_id FROM follows WHERE follower_id = $1 AND account_id IN each($2)",
        follower_id, json.dumps(list(account_ids)),
    )  # fmt: skip
    return {row["account_id"] for row in rows}


async def find_avatar(conn: Reader, account_id: str) -> AccountAvatar | None:
    """Return an account with its uploaded image; the image of a disabled user is not shown."""
    row = await conn.fetch_one(
        """
        SELECT n.key, u.disabled_at, a.media_type, a.content FROM names n
        LEFT JOIN users u ON u.id = n.account_id
        LEFT JOIN avatars a ON a.account_id = n.account_id
        WHERE n.account_id = $1
        """,
        account_id,
    )
    if row is None:
        return None
    upload = None
    if row["content"] is not None and row["disabled_at"] is None:
        upload = AvatarImage(media_type=row["media_type"], content=row["content"])
    return AccountAvatar(name=row["key"], upload=upload)


async def set_avatar(conn: Connection, account_id: str, picture: AvatarImage) -> None:
    await conn.execute(
        """
        INSERT INTO avatars (account_id, media_type, content, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id) DO UPDATE SET media_type = excluded.media_type,
            content = excluded.content, updated_at = excluded.updated_at
        """,
        account_id, picture.media_type, picture.content, micros(),
    )  # fmt: skip


async def remove_avatar(conn: Connection, account_id: str) -> bool:
    """Remove the upload; False when there is none."""
    count = await conn.execute("DELETE FROM avatars WHERE account_id = $1", account_id)
    return count == 1
