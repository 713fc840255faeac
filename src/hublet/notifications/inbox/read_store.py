"""SQL that reads inboxes: pages with their counts, and what the filters name."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hublet.accounts.names import name_key
from hublet.community.threads.records import ThreadKind
from hublet.core.database import Reader, Row, like_pattern
from hublet.notifications.inbox.conditions import (
    REPO_COLUMNS,
    ROLE_JOINS,
    Condition,
    chosen_by,
    may_see,
    split_in_order,
)
from hublet.notifications.records import (
    BLOG,
    END_OF_TIME,
    PAPER,
    POST,
    InboxEntry,
    InboxPage,
    InboxSummary,
    Involvement,
    LastEvent,
    Selection,
)
from hublet.repos.names import repo_name_key
from hublet.repos.records import RepoType

PAGE = 25
MOST_PARTICIPANTS = 100
_TYPES = (*RepoType, PAPER, POST, BLOG)
_TALLY = "count(*) AS total, sum(CASE WHEN read THEN 0 ELSE 1 END) AS unread"
_COLUMNS = "thread_id, place_id, read, updated_at, event_id, involvement, last_event_id"
_ITEMS = f"SELECT {_COLUMNS} FROM notifications WHERE "
# A search finds no more than the newest of these.
MOST_FOUND = 1000


async def read_page_of(conn: Reader, user_id: str, selection: Selection, *, skip: int) -> InboxPage:
    """Return a page and the counts, from one statement, so that they agree.

    Behind the end nothing is read, because the count says that there is nothing.
    """
    counts, condition = _counts_query(user_id, selection)
    found, condition = _items_query(user_id, selection, condition, most=skip + PAGE)
    counted_column = "unread" if selection.unread else "total"
    place = len(condition.values) + 1
    rows = await conn.fetch_all(
        f"""
        WITH counted AS (
            SELECT CAST(coalesce(sum(total), 0) AS BIGINT) AS total,
                CAST(coalesce(sum(unread), 0) AS BIGINT) AS unread
            FROM ({counts}) AS tallies
        ), page AS (
            SELECT * FROM (
                SELECT {_COLUMNS} FROM ({found}) AS found
                ORDER BY updated_at DESC LIMIT {PAGE} OFFSET ${place}
            ) AS rows_of_page
            LIMIT (SELECT CASE WHEN {counted_column} > ${place} THEN {PAGE} ELSE 0 END FROM counted)
        )
        SELECT counted.total, counted.unread, {_COLUMNS}
        FROM counted LEFT JOIN page ON TRUE ORDER BY page.updated_at DESC
        """,
        *condition.values, skip,
    )  # fmt: skip
    entries = [_entry_record(row) for row in rows if row["thread_id"] is not None]
    return InboxPage(entries=entries, total=rows[0]["total"], unread=rows[0]["unread"])


async def count_unread(conn: Reader, user_id: str) -> int:
    counts, condition = _counts_query(user_id, Selection())
    sql = f"SELECT CAST(coalesce(sum(unread), 0) AS BIGINT) FROM ({counts}) AS tallies"
    found: int = await conn.fetch_value(sql, *condition.values)
    return found


async def count_unread_and_find_watch(
    conn: Reader, user_id: str, *, target_id: str
) -> tuple[int, bool]:
    """Return how many items are unread, and whether the user watches this target."""
    counts, condition = _counts_query(user_id, Selection())
    first = len(condition.values) + 1
    row = await conn.fetch_one(
        f"""
        SELECT CAST(coalesce(sum(unread), 0) AS BIGINT) AS unread,
            (SELECT count(*) FROM watches w
             WHERE w.user_id = ${first} AND w.target_id = ${first + 1}) AS watches
        FROM ({counts}) AS tallies
        """,
        *condition.values, user_id, target_id,
    )  # fmt: skip
    assert row is not None  # noqa: S101 - a sum always has a row
    return row["unread"], bool(row["watches"])


def _counts_query(user_id: str, selection: Selection) -> tuple[str, Condition]:
    """Return the query that counts the items, read or not: stored counts, less what is newer."""
    if selection.threads is not None or selection.except_owners:
        # Counts are stored for whole repositories and types, not for threads nor by owners.
        condition = chosen_by(user_id, replace(selection, unread=False))
        return f"SELECT {_TALLY} FROM notifications WHERE {condition.sql}", condition
    facets = selection.places or ([selection.type] if selection.type else _TYPES)
    condition = (
        Condition()
        .also("user_id = ?", user_id)
        .also("facet IN each(?)", json.dumps(sorted(facets)))
        .also("involvement >= ?", selection.least)
    )
    counts = f"SELECT total, unread FROM notification_counts WHERE {condition.sql}"
    if selection.until == END_OF_TIME:
        return counts, condition
    rest = replace(selection, unread=False, until=END_OF_TIME)
    for part in split_in_order(rest):
        condition = chosen_by(user_id, part, after=condition).also(
            "updated_at > ?", selection.until
        )
        newer = f"SELECT {_TALLY} FROM notifications WHERE {condition.sql}"
        counts += f" UNION ALL SELECT -total, -unread FROM ({newer}) AS newer"
    return counts, condition


def _items_query(
    user_id: str, selection: Selection, after: Condition, *, most: int
) -> tuple[str, Condition]:
    """Return the query that finds the items: each part by an index that has them in order.

    Each part is limited to what the page can need, so that not everything is sorted.
    """
    *others, last = _conditions(user_id, selection, after)
    if not others:
        return _ITEMS + last.sql, last
    place = f"${len(last.values) + 1}"
    parts = [
        f"SELECT * FROM ({_ITEMS}{part.sql} ORDER BY updated_at DESC LIMIT {place}) AS part_{number}"
        for number, part in enumerate((*others, last))
    ]
    return " UNION ALL ".join(parts), Condition((), (*last.values, most))


def _conditions(user_id: str, selection: Selection, after: Condition) -> Iterator[Condition]:
    for each in split_in_order(selection):
        after = chosen_by(user_id, each, after=after)
        yield after


def _entry_record(row: Row) -> InboxEntry:
    return InboxEntry(
        thread_id=row["thread_id"],
        place_id=row["place_id"],
        read=bool(row["read"]),
        updated_at=row["updated_at"],
        event_id=row["event_id"],
        involvement=Involvement(row["involvement"]),
        last_event_id=row["last_event_id"],
    )


async def summarize(conn: Reader, user_id: str) -> InboxSummary:
    row = await conn.fetch_one(
        """
        SELECT i.version, i.last_at, CAST(coalesce(sum(c.total), 0) AS BIGINT) AS total,
            CAST(coalesce(sum(c.unread), 0) AS BIGINT) AS unread,
            CAST(coalesce(sum(CASE WHEN c.involvement >= 1 THEN c.unread END), 0) AS BIGINT)
                AS participating,
            CAST(coalesce(sum(CASE WHEN c.involvement >= 2 THEN c.unread END), 0) AS BIGINT)
                AS mentioned
        FROM inboxes i
        LEFT JOIN notification_counts c ON c.user_id = i.user_id AND c.facet IN each($2)
        WHERE i.user_id = $1 GROUP BY i.version, i.last_at
        """,
        user_id, json.dumps(_TYPES),
    )  # fmt: skip
    return InboxSummary(**dict(row)) if row else InboxSummary()


async def count_by_facet(
    conn: Reader, user_id: str, facets: Collection[str], *, least: Involvement
) -> dict[str, tuple[int, int]]:
    """Return by type or place how many items there are, and how many are unread."""
    rows = await conn.fetch_all(
        """
        SELECT facet, CAST(sum(total) AS BIGINT) AS total, CAST(sum(unread) AS BIGINT) AS unread
        FROM notification_counts
        WHERE user_id = $1 AND facet IN each($2) AND involvement >= $3 GROUP BY facet
        """,
        user_id, json.dumps(sorted(facets)), least,
    )  # fmt: skip
    return {row["facet"]: (row["total"], row["unread"]) for row in rows}


async def list_finished(conn: Reader, user_id: str) -> list[str]:
    """Return the unread threads that were merged or closed."""
    rows = await conn.fetch_all(
        """
        SELECT n.thread_id FROM notifications n JOIN threads t ON t.id = n.thread_id
        WHERE n.user_id = $1 AND NOT n.read AND t.status IN ('merged', 'closed')
        """,
        user_id,
    )
    return [row["thread_id"] for row in rows]


async def list_titled(conn: Reader, user_id: str, text: str) -> list[str]:
    """Return the newest threads and messages in an inbox whose titles contain a text."""
    rows = await conn.fetch_all(
        """
        SELECT n.thread_id FROM notifications n LEFT JOIN threads t ON t.id = n.thread_id
        LEFT JOIN messages m ON m.id = n.thread_id AND m.user_id = n.user_id
        WHERE n.user_id = $1 AND lower(coalesce(t.title, m.title)) LIKE lower($2) ESCAPE '~'
        ORDER BY n.updated_at DESC LIMIT $3
        """,
        user_id, like_pattern(text), MOST_FOUND,
    )  # fmt: skip
    return [row["thread_id"] for row in rows]


async def list_last_events(conn: Reader, event_ids: Collection[str]) -> dict[str, LastEvent]:
    """Return those of these comments and changes that are there and not hidden."""
    rows = await conn.fetch_all(
        """
        SELECT c.id, 'comment' AS type, u.name, NULL AS data
        FROM comments c JOIN users u ON u.id = c.author_id
        WHERE c.id IN each($1) AND NOT c.hidden
        UNION ALL
        SELECT c.id, c.type, u.name, c.data
        FROM thread_changes c JOIN users u ON u.id = c.author_id WHERE c.id IN each($1)
        """,
        json.dumps(list(event_ids)),
    )
    return {
        row["id"]: LastEvent(
            type=row["type"],
            author=row["name"],
            status=json.loads(row["data"] or "{}").get("status"),
        )
        for row in rows
    }


async def list_subjects(
    conn: Reader, thread_ids: Collection[str], *, user_id: str
) -> dict[str, Row]:
    """Return those of the threads that exist, with their repositories and their owners' names."""
    rows = await conn.fetch_all(
        f"""
        SELECT t.id, t.kind, t.title, t.number, t.status, t.is_pull_request, t.slug,
            t.paper_id,
            coalesce(owning_user.name, owning_org.name) AS owner_name, {REPO_COLUMNS}
        FROM threads t LEFT JOIN repos r ON r.id = t.repo_id
        LEFT JOIN users owning_user ON owning_user.id = coalesce(r.owner_id, t.owner_id)
        LEFT JOIN organizations owning_org ON owning_org.id = coalesce(r.owner_id, t.owner_id)
        {ROLE_JOINS}
        WHERE t.id IN each($2)
        """,
        user_id, json.dumps(list(thread_ids)),
    )  # fmt: skip
    return {row["id"]: row for row in rows}


async def list_messages(
    conn: Reader, message_ids: Collection[str], *, user_id: str
) -> dict[str, Row]:
    rows = await conn.fetch_all(
        "SELECT id, title FROM messages WHERE user_id = $1 AND id IN each($2)",
        user_id, json.dumps(list(message_ids)),
    )  # fmt: skip
    return {row["id"]: row for row in rows}


async def list_participants(conn: Reader, thread_ids: Collection[str]) -> Sequence[Row]:
    """Return who opened, commented on or changed these threads, in the order they came.

    Of each thread at most `MOST_PARTICIPANTS`: the inbox shows their avatars.
    """
    return await conn.fetch_all(
        """
        SELECT came.thread_id, came.user_id, u.name
        FROM (
            SELECT thread_id, user_id, since,
                row_number() OVER (PARTITION BY thread_id ORDER BY since, user_id) AS position
            FROM thread_participants
            WHERE thread_id IN each($1) AND (opened OR commented OR changed)
        ) AS came JOIN users u ON u.id = came.user_id
        WHERE came.position <= $2 ORDER BY came.thread_id, came.position
        """,
        json.dumps(list(thread_ids)), MOST_PARTICIPANTS,
    )  # fmt: skip


async def list_repos_named(
    conn: Reader, full_name: str, types: list[RepoType], *, user_id: str
) -> list[str]:
    """Return the repositories of these types that have or had this name, and the user may see."""
    owner, _, name = full_name.partition("/")
    rows = await conn.fetch_all(
        f"""
        SELECT {REPO_COLUMNS} FROM names n JOIN repos r ON r.owner_id = n.account_id {ROLE_JOINS}
        WHERE n.key = $2 AND r.name_key = $3 AND r.type IN each($4)
        UNION ALL
        SELECT {REPO_COLUMNS} FROM names n JOIN repo_redirects d ON d.owner_id = n.account_id
        JOIN repos r ON r.id = d.repo_id {ROLE_JOINS}
        WHERE n.key = $2 AND d.name_key = $3 AND d.type IN each($4)
        """,
        user_id, name_key(owner), repo_name_key(name), json.dumps(types),
    )  # fmt: skip
    return [row["repo_id"] for row in rows if may_see(row, user_id)]


async def list_accounts_named(conn: Reader, name: str) -> list[str]:
    rows = await conn.fetch_all("SELECT account_id FROM names WHERE key = $1", name_key(name))
    return [row["account_id"] for row in rows]


async def list_papers_named(conn: Reader, name: str) -> list[str]:
    """Return the thread of a paper that has this id here, or this arXiv id."""
    rows = await conn.fetch_all(
        "SELECT id FROM threads WHERE kind = $1 AND (id = $2 OR paper_id = $3)",
        ThreadKind.paper, name.lower(), name,
    )  # fmt: skip
    return [row["id"] for row in rows]


async def list_blogs_named(conn: Reader, name: str) -> list[str]:
    """Return the blogs that have this id or this slug; each author has slugs of their own."""
    rows = await conn.fetch_all(
        "SELECT id FROM threads WHERE kind = $1 AND (id = $2 OR slug = $3)",
        ThreadKind.blog, name.lower(), name,
    )  # fmt: skip
    return [row["id"] for row in rows]
