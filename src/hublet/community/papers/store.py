"""SQL of papers and the votes for them."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from hublet.accounts.names import name_key
from hublet.community.papers.records import DailyPapersQuery, PaperRecord, PaperSort
from hublet.community.threads.store import THREAD_COLUMNS, thread_record
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row, like_pattern

_PAPER_COLUMNS = f"{THREAD_COLUMNS}, p.submitter_id, p.published_at, p.submitted_at, p.upvotes"
_FROM_PAPERS = "FROM papers p JOIN threads t ON t.id = p.thread_id"

# Every order ends with the id, so that it is total.
_ORDER = {
    PaperSort.newest: "p.submitted_at DESC, p.thread_id DESC",
    PaperSort.trending: "p.upvotes DESC, p.submitted_at DESC, p.thread_id DESC",
}


async def add(conn: Connection, paper: PaperRecord) -> None:
    """Add the columns of a paper that its thread does not have."""
    await conn.execute(
        """
        INSERT INTO papers (thread_id, submitter_id, published_at, submitted_at, words)
        VALUES ($1, $2, $3, $4, $5)
        """,
        paper.thread.id, paper.submitter_id, to_micros(paper.published_at),
        to_micros(paper.submitted_at), _words(paper),
    )  # fmt: skip


def _words(paper: PaperRecord) -> str:
    return "\n".join([paper.id, paper.thread.title, *paper.authors, paper.summary]).casefold()


async def find(conn: Reader, paper_id: str) -> PaperRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_PAPER_COLUMNS} {_FROM_PAPERS} WHERE t.paper_id = $1", paper_id
    )
    return _paper_record(row) if row else None


async def list_by_threads(conn: Reader, thread_ids: Collection[str]) -> list[PaperRecord]:
    rows = await conn.fetch_all(
        f"SELECT {_PAPER_COLUMNS} {_FROM_PAPERS} WHERE p.thread_id IN each($1)",
        json.dumps(list(thread_ids)),
    )
    return [_paper_record(row) for row in rows]


async def list_newest(conn: Reader, *, after: str, limit: int) -> list[PaperRecord]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_PAPER_COLUMNS} {_FROM_PAPERS} WHERE ($1 = '' OR p.thread_id < $1)
        ORDER BY p.thread_id DESC LIMIT $2
        """,
        after, limit,
    )  # fmt: skip
    return [_paper_record(row) for row in rows]


async def search(conn: Reader, words: Sequence[str], *, limit: int) -> list[PaperRecord]:
    """Return the papers that contain every one of these words, newest publications first."""
    conditions = [f"p.words LIKE ${number} ESCAPE '~'" for number, _ in enumerate(words, start=2)]
    rows = await conn.fetch_all(
        f"""
        SELECT {_PAPER_COLUMNS} {_FROM_PAPERS} WHERE {" AND ".join(["TRUE", *conditions])}
        ORDER BY p.published_at DESC, p.thread_id DESC LIMIT $1
        """,
        limit, *(like_pattern(word.casefold()) for word in words),
    )  # fmt: skip
    return [_paper_record(row) for row in rows]


async def list_daily(conn: Reader, query: DailyPapersQuery) -> list[PaperRecord]:
    """Return the papers that were submitted in a span of time, or at any time."""
    start, end = map(to_micros, query.span) if query.span else (0, 2**62)
    rows = await conn.fetch_all(
        f"""
        SELECT {_PAPER_COLUMNS} {_FROM_PAPERS} WHERE p.submitted_at >= $1 AND p.submitted_at < $2
          AND ($3 = '' OR p.submitter_id = (SELECT account_id FROM names WHERE key = $3))
        ORDER BY {_ORDER[query.sort]} LIMIT $4 OFFSET $5
        """,
        start, end, name_key(query.submitter), query.limit, query.page * query.limit,
    )  # fmt: skip
    return [_paper_record(row) for row in rows]


async def set_vote(conn: Connection, thread_id: str, *, user_id: str, voted: bool) -> None:
    """Add or remove the vote of a user, and count the votes."""
    if voted:
        await conn.execute(
            """
            INSERT INTO paper_votes (thread_id, user_id, voted_at) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING
            """,
            thread_id, user_id, micros(),
        )  # fmt: skip
    else:
        await conn.execute(
            "DELETE FROM paper_votes WHERE thread_id = $1 AND user_id = $2", thread_id, user_id
        )
    await conn.execute(
        """
        UPDATE papers
        SET upvotes = (SELECT count(*) FROM paper_votes v WHERE v.thread_id = $1)
        WHERE thread_id = $1
        """,
        thread_id,
    )


async def has_voted(conn: Reader, thread_id: str, *, user_id: str) -> bool:
    found = await conn.fetch_value(
        "SELECT count(*) FROM paper_votes WHERE thread_id = $1 AND user_id = $2", thread_id, user_id
    )
    return bool(found)


def _paper_record(row: Row) -> PaperRecord:
    values: dict[str, Any] = dict(row)
    return PaperRecord(
        submitter_id=values.pop("submitter_id"),
        published_at=from_micros(values.pop("published_at")),
        submitted_at=from_micros(values.pop("submitted_at")),
        upvotes=values.pop("upvotes"),
        # What is left are the columns of the thread.
        thread=thread_record(values),
    )
