"""SQL of repositories, their settings, likes and the redirects from their old names."""

import json
from collections.abc import Iterable

from hublet.accounts.names import name_key
from hublet.accounts.records import Owner, OwnerType, Role, User
from hublet.accounts.users.store import USER_COLUMNS, user_record
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.events import RepoSnapshot
from hublet.repos import name_index_store
from hublet.repos.names import repo_name_key
from hublet.repos.records import (
    Gated,
    Repo,
    RepoAddress,
    RepoGuard,
    RepoType,
    SettingsChange,
    UserLike,
    Visibility,
)

# Where repositories are called `r` and joined with `OWNER`; `record` reads them. Joining the view
# of owners instead would make SQLite do everything twice, once for users and once for the others.
COLUMNS = """
    r.id, r.type, r.owner_id, coalesce(owning_user.name, owning_org.name) AS owner_name,
    CASE WHEN owning_user.id IS NULL THEN 'org' ELSE 'user' END AS owner_type, r.name, r.visibility,
    r.gated, r.discussions_disabled, r.sdk, r.resource_group_id, r.creator_id, r.created_with,
    r.head_sha, r.card, r.tags, r.size, r.total_files, r.downloads, r.likes,
    r.trending_score, r.safetensors, r.created_at, r.updated_at
"""
OWNER = """
    LEFT JOIN users owning_user ON owning_user.id = r.owner_id
    LEFT JOIN organizations owning_org ON owning_org.id = r.owner_id
"""
_FROM = f"FROM repos r {OWNER}"


async def add(conn: Connection, repo: Repo) -> bool:
    """Add a repository; False when its owner has one of this type and name."""
    added = await conn.execute(
        """
        INSERT INTO repos
            (id, type, owner_id, name, name_key, visibility, gated, sdk, resource_group_id,
             creator_id, created_with, head_sha, tags, total_files, size, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
        ON CONFLICT DO NOTHING
        """,
        repo.id, repo.type, repo.owner_id, repo.name, repo_name_key(repo.name), repo.visibility,
        repo.gated, repo.sdk, repo.resource_group_id, repo.creator_id, repo.created_with,
        repo.head_sha, json.dumps(repo.tags), repo.total_files, repo.size,
        to_micros(repo.created_at),
    ) == 1  # fmt: skip
    if added:
        await name_index_store.add(conn, repo)
    return added


async def find(conn: Reader, repo_id: str) -> Repo | None:
    row = await conn.fetch_one(f"SELECT {COLUMNS} {_FROM} WHERE r.id = $1", repo_id)
    return record(row) if row else None


async def find_by_name(conn: Reader, address: RepoAddress) -> Repo | None:
    row = await conn.fetch_one(
        f"""
        SELECT {COLUMNS} {_FROM} JOIN names n ON n.account_id = r.owner_id
        WHERE r.type = $1 AND n.key = $2 AND r.name_key = $3
        """,
        address.type, name_key(address.namespace), repo_name_key(address.name),
    )  # fmt: skip
    return record(row) if row else None


async def find_public(conn: Reader, address: RepoAddress) -> Repo | None:
    row = await conn.fetch_one(
        f"""
        SELECT {COLUMNS} {_FROM} JOIN names n ON n.account_id = r.owner_id
        WHERE r.type = $1 AND n.key = $2 AND r.name_key = $3 AND r.visibility = 'public'
        """,
        address.type, name_key(address.namespace), repo_name_key(address.name),
    )  # fmt: skip
    return record(row) if row else None


async def guard_of(conn: Reader, address: RepoAddress, *, user_id: str) -> RepoGuard:
    """Return the guard of the repository that has this name, or had it, or of none.

    There is always a row, and always a look for a role.
    """
    row = await conn.fetch_one(
        """
        SELECT coalesce(r.id, '') AS repo_id, coalesce(r.owner_id, '') AS owner_id,
               coalesce(r.creator_id, '') AS creator_id,
               coalesce(r.visibility, 'private') AS visibility, r.gated, r.resource_group_id,
               r.created_with, m.role AS organization_role, g.role AS group_role
        FROM (
            SELECT (
                SELECT own.id FROM names n JOIN repos own ON own.owner_id = n.account_id
                WHERE own.type = $1 AND n.key = $2 AND own.name_key = $3
            ) AS named, (
                SELECT d.repo_id FROM names n JOIN repo_redirects d ON d.owner_id = n.account_id
                WHERE d.type = $1 AND n.key = $2 AND d.name_key = $3
            ) AS moved
        ) found
        LEFT JOIN repos r ON r.id = coalesce(found.named, found.moved, '')
        LEFT JOIN memberships m
            ON m.organization_id = coalesce(r.owner_id, '') AND m.user_id = $4
        LEFT JOIN resource_group_members g
            ON g.resource_group_id = coalesce(r.resource_group_id, '') AND g.user_id = $4
        """,
        address.type, name_key(address.namespace), repo_name_key(address.name), user_id,
    )  # fmt: skip
    assert row is not None  # noqa: S101 - the innermost query has one row
    return RepoGuard(
        repo_id=row["repo_id"],
        owner_id=row["owner_id"],
        creator_id=row["creator_id"],
        visibility=Visibility(row["visibility"]),
        gated=Gated(row["gated"]) if row["gated"] else None,
        resource_group_id=row["resource_group_id"],
        created_with=row["created_with"],
        organization_role=Role(row["organization_role"]) if row["organization_role"] else None,
        group_role=Role(row["group_role"]) if row["group_role"] else None,
    )


async def list_by_ids(conn: Reader, repo_ids: Iterable[str]) -> list[Repo]:
    rows = await conn.fetch_all(
        f"SELECT {COLUMNS} {_FROM} WHERE r.id IN each($1)", json.dumps(list(repo_ids))
    )
    return [record(row) for row in rows]


async def list_ids(conn: Reader, *, after: str, limit: int) -> list[str]:
    """Return the ids of all repositories, the smallest first."""
    rows = await conn.fetch_all(
        "SELECT id FROM repos WHERE id > $1 ORDER BY id LIMIT $2", after, limit
    )
    return [row["id"] for row in rows]


async def existing_of(conn: Reader, repo_ids: Iterable[str]) -> set[str]:
    """Return those of these ids that a repository has."""
    rows = await conn.fetch_all(
        "SELECT id FROM repos WHERE id IN each($1)", json.dumps(list(repo_ids))
    )
    return {row["id"] for row in rows}


async def remove(conn: Connection, repo_id: str) -> bool:
    """Remove a repository with all that belongs to it; False when it is gone already."""
    await name_index_store.remove(conn, repo_id)
    return await conn.execute("DELETE FROM repos WHERE id = $1", repo_id) == 1


async def set_name(conn: Connection, *, before: Repo, after: Repo) -> bool:
    """Change name and owner; False when the repository is not where it was any more.

    Raises UniqueViolation when the name is taken.
    """
    moved = await conn.execute(
        """
        UPDATE repos SET owner_id = $4, name = $5, name_key = $6, resource_group_id = $7
        WHERE id = $1 AND owner_id = $2 AND name_key = $3
        """,
        before.id, before.owner_id, repo_name_key(before.name),
        after.owner_id, after.name, repo_name_key(after.name), after.resource_group_id,
    ) == 1  # fmt: skip
    if moved:
        await name_index_store.move(conn, before)
    return moved


async def add_redirect(conn: Connection, repo: Repo) -> None:
    """Redirect from the name that this record has to the repository."""
    await conn.execute(
        """
        INSERT INTO repo_redirects (type, owner_id, name_key, repo_id) VALUES ($1, $2, $3, $4)
        ON CONFLICT (type, owner_id, name_key) DO UPDATE SET repo_id = excluded.repo_id
        """,
        repo.type, repo.owner_id, repo_name_key(repo.name), repo.id,
    )  # fmt: skip


async def remove_redirect(conn: Connection, repo: Repo) -> None:
    """Remove the redirect from this repository's name to one that had it before."""
    await conn.execute(
        "DELETE FROM repo_redirects WHERE type = $1 AND owner_id = $2 AND name_key = $3",
        repo.type, repo.owner_id, repo_name_key(repo.name),
    )  # fmt: skip


async def roles_of(conn: Reader, repo: Repo, *, user_id: str) -> tuple[Role | None, Role | None]:
    """Return the user's role in the owning organization and in the repository's resource group."""
    row = await conn.fetch_one(
        """
        SELECT m.role AS organization, g.role AS resource_group
        FROM memberships m LEFT JOIN resource_group_members g
            ON g.user_id = m.user_id AND g.resource_group_id = $3
        WHERE m.organization_id = $1 AND m.user_id = $2
        """,
        repo.owner_id, user_id, repo.resource_group_id,
    )  # fmt: skip
    if row is None:
        return None, None
    return Role(row["organization"]), Role(row["resource_group"]) if row["resource_group"] else None


async def find_viewer(conn: Reader, repo: Repo, *, user_id: str) -> Row:
    """Return what a user has to do with a repository: both roles, a like, a request for access."""
    row = await conn.fetch_one(
        """
        SELECT m.role AS organization, g.role AS resource_group, l.user_id AS liked_by, a.status
        FROM (SELECT CAST($2 AS TEXT) AS user_id) v
        LEFT JOIN memberships m ON m.organization_id = $1 AND m.user_id = v.user_id
        LEFT JOIN resource_group_members g
            ON g.user_id = m.user_id AND g.resource_group_id = $3
        LEFT JOIN likes l ON l.repo_id = $4 AND l.user_id = v.user_id
        LEFT JOIN access_requests a ON a.repo_id = $4 AND a.user_id = v.user_id
        """,
        repo.owner_id, user_id, repo.resource_group_id, repo.id,
    )  # fmt: skip
    assert row is not None  # noqa: S101 - there is always a user
    return row


async def list_roles(
    conn: Reader, repo: RepoSnapshot, *, user_ids: Iterable[str]
) -> dict[str, tuple[Role, Role | None]]:
    """Return the roles of `roles_of` for those of these users who are members."""
    rows = await conn.fetch_all(
        """
        SELECT m.user_id, m.role AS organization, g.role AS resource_group
        FROM memberships m JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL
        LEFT JOIN resource_group_members g
            ON g.user_id = m.user_id AND g.resource_group_id = $3
        WHERE m.organization_id = $1 AND m.user_id IN each($2)
        """,
        repo.owner_id, json.dumps(list(user_ids)), repo.resource_group_id,
    )  # fmt: skip
    return {
        row["user_id"]: (
            Role(row["organization"]),
            Role(row["resource_group"]) if row["resource_group"] else None,
        )
        for row in rows
    }


async def access_status(conn: Reader, repo_id: str, *, user_id: str) -> str | None:
    """Return the status of the user's request to read a gated repository."""
    status: str | None = await conn.fetch_value(
        "SELECT status FROM access_requests WHERE repo_id = $1 AND user_id = $2", repo_id, user_id
    )
    return status


async def touch(conn: Connection, repo_id: str) -> None:
    await conn.execute("UPDATE repos SET updated_at = $1 WHERE id = $2", micros(), repo_id)


def record(row: Row) -> Repo:
    return Repo(
        id=row["id"],
        type=RepoType(row["type"]),
        owner=Owner(id=row["owner_id"], name=row["owner_name"], type=OwnerType(row["owner_type"])),
        name=row["name"],
        visibility=Visibility(row["visibility"]),
        gated=Gated(row["gated"]) if row["gated"] else None,
        discussions_disabled=bool(row["discussions_disabled"]),
        sdk=row["sdk"],
        resource_group_id=row["resource_group_id"],
        creator_id=row["creator_id"],
        created_with=row["created_with"],
        head_sha=row["head_sha"],
        card=json.loads(row["card"]) if row["card"] else None,
        tags=tuple(json.loads(row["tags"])),
        size=row["size"],
        total_files=row["total_files"],
        downloads=row["downloads"],
        likes=row["likes"],
        trending_score=row["trending_score"],
        safetensors=json.loads(row["safetensors"]) if row["safetensors"] else None,
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
    )


async def change_settings(conn: Connection, repo_id: str, change: SettingsChange) -> None:
    """Change these settings and no others, so that two changes at once both count."""
    await conn.execute(
        """
        UPDATE repos SET
            visibility = coalesce($2, visibility),
            gated = CASE WHEN $3 THEN $4 ELSE gated END,
            discussions_disabled = coalesce($5, discussions_disabled)
        WHERE id = $1
        """,
        repo_id, change.visibility, change.gated is not None, change.gated or None,
        change.discussions_disabled,
    )  # fmt: skip
    if change.visibility is not None:
        await name_index_store.publish_or_hide(conn, repo_id)


async def set_resource_group(conn: Connection, repo_id: str, group_id: str | None) -> None:
    await conn.execute("UPDATE repos SET resource_group_id = $2 WHERE id = $1", repo_id, group_id)


async def add_like(conn: Connection, repo_id: str, *, user_id: str) -> bool:
    """Add a like and count it; False when the user liked the repository before."""
    added = await conn.execute(
        """
        INSERT INTO likes (repo_id, user_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        repo_id, user_id, micros(),
    ) == 1  # fmt: skip
    if added:
        await conn.execute("UPDATE repos SET likes = likes + 1 WHERE id = $1", repo_id)
    return added


async def remove_like(conn: Connection, repo_id: str, *, user_id: str) -> None:
    removed = await conn.execute(
        "DELETE FROM likes WHERE repo_id = $1 AND user_id = $2", repo_id, user_id
    )
    if removed:
        await conn.execute("UPDATE repos SET likes = likes - 1 WHERE id = $1", repo_id)


async def liked_by(conn: Reader, user_id: str, repo_ids: Iterable[str]) -> set[str]:
    """Return those of these repositories that a user likes, by id."""
    rows = await conn.fetch_all(
        "SELECT repo_id FROM likes WHERE user_id = $1 AND repo_id IN each($2)",
        user_id, json.dumps(list(repo_ids)),
    )  # fmt: skip
    return {row["repo_id"] for row in rows}


async def list_likers(
    conn: Reader, repo_id: str, *, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM likes l JOIN users u ON u.id = l.user_id
        WHERE l.repo_id = $1 AND l.user_id > $2 AND u.disabled_at IS NULL
        ORDER BY l.user_id LIMIT $3
        """,
        repo_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_likes_of(
    conn: Reader, user_id: str, *, before: tuple[int, str], limit: int = 100
) -> list[UserLike]:
    """Return the public repositories that a user likes, the newest like first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS}, l.created_at AS liked_at
        FROM likes l JOIN repos r ON r.id = l.repo_id {OWNER}
        WHERE l.user_id = $1 AND (l.created_at, l.repo_id) < ($2, $3)
          AND r.visibility = 'public'
        ORDER BY l.created_at DESC, l.repo_id DESC LIMIT $4
        """,
        user_id, before[0], before[1], limit,
    )  # fmt: skip
    return [UserLike(repo=record(row), created_at=from_micros(row["liked_at"])) for row in rows]
