"""SQL of the emoji with which users react to comments."""

import json
from collections.abc import Iterable

from hublet.community.threads.records import CommentEmoji, Emoji, EmojiCount, ThreadEmoji
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row

# The position of each kind in the list of all, which decides between equal counts.
_POSITION = {emoji: position for position, emoji in enumerate(Emoji)}


async def add(conn: Connection, thread_id: str, emoji: CommentEmoji) -> bool:
    """Add an emoji; False when the user has given this one to the comment already."""
    return await conn.execute(
        """
        INSERT INTO comment_emoji (id, thread_id, comment_id, user_id, reaction, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
        """,
        emoji.id, thread_id, emoji.comment_id, emoji.user_id, emoji.reaction,
        to_micros(emoji.created_at),
    ) == 1  # fmt: skip


async def remove(conn: Connection, comment_id: str, reaction: Emoji, *, user_id: str) -> bool:
    """Remove a user's emoji; False when there was none."""
    return await conn.execute(
        "DELETE FROM comment_emoji WHERE comment_id = $1 AND reaction = $2 AND user_id = $3",
        comment_id, reaction, user_id,
    ) == 1  # fmt: skip


async def remove_all(conn: Connection, comment_id: str) -> None:
    await conn.execute("DELETE FROM comment_emoji WHERE comment_id = $1", comment_id)


async def list_of(conn: Reader, comment_id: str, *, after: str, limit: int) -> list[CommentEmoji]:
    """Return the emoji of a comment, oldest first, after the one with this id."""
    rows = await conn.fetch_all(
        """
        SELECT id, comment_id, user_id, reaction, created_at FROM comment_emoji
        WHERE comment_id = $1 AND id > $2 ORDER BY id LIMIT $3
        """,
        comment_id, after, limit,
    )  # fmt: skip
    return [
        CommentEmoji(
            id=row["id"],
            comment_id=row["comment_id"],
            user_id=row["user_id"],
            reaction=Emoji(row["reaction"]),
            created_at=from_micros(row["created_at"]),
        )
        for row in rows
    ]


async def count_of_thread(
    conn: Reader, thread_id: str, *, names: int, user_id: str
) -> tuple[dict[str, list[EmojiCount]], frozenset[tuple[str, Emoji]]]:
    """Return the counts of all comments of a thread, and the emoji that a user gave there."""
    rows = await conn.fetch_all(
        """
        SELECT e.comment_id, e.reaction, e.count, e.is_given, u.name FROM (
            SELECT comment_id, reaction, user_id,
                count(*) OVER (PARTITION BY comment_id, reaction) AS count,
                max(CASE WHEN user_id = $3 THEN 1 ELSE 0 END)
                    OVER (PARTITION BY comment_id, reaction) AS is_given,
                row_number() OVER (PARTITION BY comment_id, reaction ORDER BY id) AS place
            FROM comment_emoji WHERE thread_id = $1
        ) e JOIN users u ON u.id = e.user_id
        WHERE e.place <= $2 ORDER BY e.place
        """,
        thread_id, names, user_id,
    )  # fmt: skip
    given = {(row["comment_id"], Emoji(row["reaction"])) for row in rows if row["is_given"]}
    return _counts(rows), frozenset(given)


async def count_of_comments(
    conn: Reader, comment_ids: Iterable[str], *, names: int
) -> dict[str, list[EmojiCount]]:
    """Count the emoji of comments, by comment, with the names of as many users, oldest first."""
    rows = await conn.fetch_all(
        """
        SELECT e.comment_id, e.reaction, e.count, u.name FROM (
            SELECT comment_id, reaction, user_id,
                count(*) OVER (PARTITION BY comment_id, reaction) AS count,
                row_number() OVER (PARTITION BY comment_id, reaction ORDER BY id) AS place
            FROM comment_emoji WHERE comment_id IN each($1)
        ) e JOIN users u ON u.id = e.user_id
        WHERE e.place <= $2 ORDER BY e.place
        """,
        json.dumps(list(comment_ids)), names,
    )  # fmt: skip
    return _counts(rows)


def _counts(rows: Iterable[Row]) -> dict[str, list[EmojiCount]]:
    users: dict[tuple[str, str, int], list[str]] = {}
    for row in rows:
        users.setdefault((row["comment_id"], row["reaction"], row["count"]), []).append(row["name"])
    counts: dict[str, list[EmojiCount]] = {}
    for (comment_id, reaction, count), first in users.items():
        each = EmojiCount(reaction=Emoji(reaction), count=count, users=tuple(first))
        counts.setdefault(comment_id, []).append(each)
    return {comment_id: _most_first(each) for comment_id, each in counts.items()}


async def count_of_threads(conn: Reader, thread_ids: Iterable[str]) -> dict[str, ThreadEmoji]:
    """Count the emoji of all comments of threads, by thread, and the users who gave them."""
    ids = json.dumps(list(thread_ids))
    users = await conn.fetch_all(
        """
        SELECT thread_id, count(DISTINCT user_id) AS count FROM comment_emoji
        WHERE thread_id IN each($1) GROUP BY thread_id
        """,
        ids,
    )
    rows = await conn.fetch_all(
        """
        SELECT thread_id, reaction, count(*) AS count FROM comment_emoji
        WHERE thread_id IN each($1) GROUP BY thread_id, reaction
        """,
        ids,
    )
    counts: dict[str, list[EmojiCount]] = {}
    for row in rows:
        each = EmojiCount(reaction=Emoji(row["reaction"]), count=row["count"])
        counts.setdefault(row["thread_id"], []).append(each)
    return {
        row["thread_id"]: ThreadEmoji(
            counts=tuple(_most_first(counts[row["thread_id"]])), user_count=row["count"]
        )
        for row in users
    }


def _most_first(counts: list[EmojiCount]) -> list[EmojiCount]:
    return sorted(counts, key=lambda each: (-each.count, _POSITION[each.reaction]))
