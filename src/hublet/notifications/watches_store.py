"""SQL of what users watch and of the repositories they muted."""

import json
from collections.abc import Iterable
from urllib.parse import quote

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.notifications.records import MuteType, SubscriptionEntry, SubscriptionTarget
from hublet.repos.records import RepoType
from hublet.repos.store import OWNER

# The rule of `repos.service.who_may_see` as SQL, for many repositories at once; $1 is the user.
_VISIBLE = """
    (r.visibility = 'public' OR r.owner_id = $1 OR EXISTS (
        SELECT 1 FROM memberships m LEFT JOIN resource_group_members g
            ON g.resource_group_id = r.resource_group_id AND g.user_id = m.user_id
        WHERE m.organization_id = r.owner_id AND m.user_id = $1
          AND (r.resource_group_id IS NULL OR m.role = 'admin' OR g.user_id IS NOT NULL)
    ))
"""
_REPO_NAME = "coalesce(owning_user.name, owning_org.name) || '/' || r.name"


async def find_visible(conn: Reader, ids: Iterable[str], *, user_id: str) -> set[tuple[str, str]]:
    """Return type and id of those accounts, repositories and threads that the user may see."""
    rows = await conn.fetch_all(
        f"""
        SELECT 'user' AS type, u.id FROM users u
        WHERE u.id IN each($2) AND u.disabled_at IS NULL
        UNION ALL
        SELECT 'org', o.id FROM organizations o WHERE o.id IN each($2)
        UNION ALL
        SELECT 'repo', r.id FROM repos r WHERE r.id IN each($2) AND {_VISIBLE}
        UNION ALL
        SELECT 'thread', t.id FROM threads t LEFT JOIN repos r ON r.id = t.repo_id
        WHERE t.id IN each($2) AND (t.repo_id IS NULL OR {_VISIBLE})
        """,
        user_id, json.dumps(list(ids)),
    )  # fmt: skip
    return {(row["type"], row["id"]) for row in rows}


async def list_watched(conn: Reader, *, user_id: str) -> list[SubscriptionEntry]:
    """Return what a user watches and may see, the longest watched first."""
    rows = await conn.fetch_all(
        f"""
        SELECT w.target_id AS id, w.type, coalesce(u.name, o.name, {_REPO_NAME}) AS name,
            r.type AS repo_type
        FROM watches w
        LEFT JOIN users u ON u.id = w.target_id AND u.disabled_at IS NULL
        LEFT JOIN organizations o ON o.id = w.target_id
        LEFT JOIN repos r ON r.id = w.target_id AND {_VISIBLE}
        {OWNER}
        WHERE w.user_id = $1 AND coalesce(u.id, o.id, r.id) IS NOT NULL
        ORDER BY w.since, w.target_id
        """,
        user_id,
    )
    return [_watched_record(row) for row in rows]


async def list_watched_organizations(conn: Reader, *, user_id: str) -> set[str]:
    """Return the ids of the organizations that a user watches."""
    rows = await conn.fetch_all(
        "SELECT target_id FROM watches WHERE user_id = $1 AND type = 'org'", user_id
    )
    return {row["target_id"] for row in rows}


async def count_watched(conn: Reader, *, user_id: str) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM watches WHERE user_id = $1", user_id)
    return count


async def count_by_type(conn: Reader, *, user_id: str) -> dict[str, int]:
    rows = await conn.fetch_all(
        "SELECT type, count(*) AS count FROM watches WHERE user_id = $1 GROUP BY type", user_id
    )
    return {row["type"]: row["count"] for row in rows}


async def add_watches(
    conn: Connection, targets: Iterable[SubscriptionTarget], *, user_id: str
) -> None:
    await conn.execute_many(
        """
        INSERT INTO watches (user_id, type, target_id, since) VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id, target_id) DO NOTHING
        """,
        [(user_id, target.type, target.id, micros()) for target in targets],
    )


async def remove_watches(
    conn: Connection, targets: Iterable[SubscriptionTarget], *, user_id: str
) -> None:
    await conn.execute_many(
        "DELETE FROM watches WHERE user_id = $1 AND type = $2 AND target_id = $3",
        [(user_id, target.type, target.id) for target in targets],
    )


async def watch_as_member(conn: Connection, organization_id: str, *, user_id: str) -> None:
    """Make a new member watch the organization, unless it is a service account."""
    await conn.execute(
        """
        INSERT INTO watches (user_id, type, target_id, since)
        SELECT u.id, 'org', $1, $3 FROM users u WHERE u.id = $2 AND u.type = 'user'
        ON CONFLICT (user_id, target_id) DO NOTHING
        """,
        organization_id, user_id, micros(),
    )  # fmt: skip


async def remove_all_watches(conn: Connection, target_id: str) -> None:
    """Remove all watches of what was deleted."""
    await conn.execute("DELETE FROM watches WHERE target_id = $1", target_id)


async def list_muted(conn: Reader, *, user_id: str) -> list[SubscriptionEntry]:
    """Return what a user muted and may see, the longest muted first."""
    rows = await conn.fetch_all(
        f"""
        SELECT r.id AS id, 'repo' AS type, {_REPO_NAME} AS name, r.type AS repo_type,
            NULL AS thread_kind, {_REPO_NAME} AS place, NULL AS position, q.muted_at
        FROM repo_mutes q JOIN repos r ON r.id = q.repo_id {OWNER}
        WHERE q.user_id = $1 AND {_VISIBLE}
        UNION ALL
        SELECT t.id, 'thread', t.title, r.type, t.kind,
            coalesce({_REPO_NAME}, posting_user.name, posting_org.name),
            coalesce(CAST(t.number AS TEXT), t.paper_id, t.slug), q.muted_at
        FROM thread_mutes q JOIN threads t ON t.id = q.thread_id
        LEFT JOIN repos r ON r.id = t.repo_id {OWNER}
        LEFT JOIN users posting_user ON posting_user.id = t.owner_id
        LEFT JOIN organizations posting_org ON posting_org.id = t.owner_id
        WHERE q.user_id = $1 AND (t.repo_id IS NULL OR {_VISIBLE})
        ORDER BY muted_at, id
        """,
        user_id,
    )
    return [_muted_record(row) for row in rows]


async def count_muted(conn: Reader, *, user_id: str) -> int:
    count: int = await conn.fetch_value(
        """
        SELECT (SELECT count(*) FROM repo_mutes WHERE user_id = $1)
            + (SELECT count(*) FROM thread_mutes WHERE user_id = $1)
        """,
        user_id,
    )
    return count


async def mute_repos(conn: Connection, ids: Iterable[str], *, user_id: str) -> None:
    await conn.execute_many(
        """
        INSERT INTO repo_mutes (repo_id, user_id, muted_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        [(repo_id, user_id, micros()) for repo_id in ids],
    )


async def unmute_repos(conn: Connection, ids: Iterable[str], *, user_id: str) -> None:
    await conn.execute(
        "DELETE FROM repo_mutes WHERE user_id = $1 AND repo_id IN each($2)",
        user_id, json.dumps(list(ids)),
    )  # fmt: skip


def _watched_record(row: Row) -> SubscriptionEntry:
    return SubscriptionEntry(
        id=row["id"],
        type=row["type"],
        name=row["name"],
        repo_type=row["repo_type"],
        page=f"/{_prefix(row)}{quote(row['name'])}",
    )


def _muted_record(row: Row) -> SubscriptionEntry:
    is_thread = row["type"] == MuteType.thread
    return SubscriptionEntry(
        id=row["id"],
        type=row["type"],
        name=row["name"],
        repo_type=None if is_thread else row["repo_type"],
        thread_kind=row["thread_kind"],
        page=_thread_page(row) if is_thread else f"/{_prefix(row)}{quote(row['place'])}",
    )


def _thread_page(row: Row) -> str:
    match row["thread_kind"]:
        case "paper":
            return f"/papers/{quote(row['position'])}"
        case "post":
            return f"/posts/{quote(row['place'])}/{quote(row['position'])}"
        case "blog":
            return f"/blog/{quote(row['place'])}/{quote(row['position'])}"
    return f"/{_prefix(row)}{quote(row['place'])}/discussions/{row['position']}"


def _prefix(row: Row) -> str:
    return RepoType(row["repo_type"]).prefix if row["repo_type"] else ""
