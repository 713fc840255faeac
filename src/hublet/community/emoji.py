"""Emoji on comments: rules of reacting and taking it back, the same in all kinds of threads.

A reaction notifies nobody, makes nobody a participant and triggers no webhook.
"""

from collections.abc import Sequence

from hublet.community import emoji_store
from hublet.community.errors import CannotReactToHidden
from hublet.community.threads import service as threads
from hublet.community.threads.records import Comment, CommentEmoji, Emoji, EmojiCount, Thread
from hublet.community.threads.service import ThreadContext
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import EmojiAdded, EmojiRemoved
from hublet.tokens.records import Caller

# How many users a comment names for each kind; all of them are in the list of its emoji.
MAX_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInContext:
    """A thread that the caller may react in, locked until the transaction ends."""

    thread: Thread
    context: ThreadContext


async def add(
    conn: Connection, caller: Caller, place: ThreadInContext, comment_id: str, reaction: Emoji
) -> list[EmojiCount]:
    """React to a comment that is not hidden; doing it again changes and publishes nothing."""
    comment = await threads.get_comment(conn, place.thread, comment_id)
    if comment.hidden:
        raise CannotReactToHidden
    emoji = CommentEmoji(
        id=new_object_id(),
        comment_id=comment.id,
        user_id=caller.user_id,
        reaction=reaction,
        created_at=now(),
    )
    if await emoji_store.add(conn, place.thread.id, emoji):
        await _publish(conn, EmojiAdded, caller, place, comment, reaction)
    return await _counts_of(conn, comment)


async def remove(
    conn: Connection, caller: Caller, place: ThreadInContext, comment_id: str, reaction: Emoji
) -> list[EmojiCount]:
    """Take back a reaction; doing it again changes and publishes nothing."""
    comment = await threads.get_comment(conn, place.thread, comment_id)
    if await emoji_store.remove(conn, comment.id, reaction, user_id=caller.user_id):
        await _publish(conn, EmojiRemoved, caller, place, comment, reaction)
    return await _counts_of(conn, comment)


async def _publish(
    conn: Connection,
    kind: type[EmojiAdded | EmojiRemoved],
    caller: Caller,
    place: ThreadInContext,
    comment: Comment,
    reaction: Emoji,
) -> None:
    event = kind(
        thread=threads.snapshot(place.thread, place.context),
        comment_id=comment.id,
        reaction=reaction,
        actor_id=caller.user_id,
    )
    await publish(conn, event)


async def counts_of(conn: Reader, comments: Sequence[Comment]) -> dict[str, list[EmojiCount]]:
    """Count the emoji of comments, by comment; one without any is left out."""
    return await emoji_store.count_of_comments(
        conn, [comment.id for comment in comments], names=MAX_NAMES
    )


async def _counts_of(conn: Reader, comment: Comment) -> list[EmojiCount]:
    return (await counts_of(conn, [comment])).get(comment.id, [])
