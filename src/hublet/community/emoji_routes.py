"""HTTP routes for the emoji on comments, the same for all kinds of threads."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import Depends

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji, emoji_store
from hublet.community.comment_schemas import CommentReactions, ReactionCount, UserReaction
from hublet.community.emoji import ThreadInContext
from hublet.community.threads import service as threads
from hublet.community.threads.records import Emoji, EmojiCount, Thread
from hublet.core.dataclasses import dataclass
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.tokens.auth import AnyCaller

_PATH = "/comment/{comment}/reactions"
_HIDDEN: dict[int | str, dict[str, Any]] = {409: {"description": "The comment is hidden."}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionThreads:
    """A kind of thread, as far as the routes of its emoji differ from those of others."""

    # As in the names of the operations, and as in their descriptions.
    name: str
    phrase: str
    # Dependencies that find the thread of the path, for a caller who may read it, react in it,
    # and take a reaction back.
    to_read: Callable[..., Awaitable[Thread]]
    to_add: Callable[..., Awaitable[ThreadInContext]]
    to_remove: Callable[..., Awaitable[ThreadInContext]]


def add_emoji_routes(router: Router, kind: ReactionThreads) -> None:
    _add_list(router, kind)
    _add_changes(router, kind)


def _add_list(router: Router, kind: ReactionThreads) -> None:
    async def list_emoji(
        *, conn: ReadConn, thread: Thread = Depends(kind.to_read), comment: str, page: PageQuery
    ) -> list[UserReaction]:
        found = await threads.get_comment(conn, thread, comment)
        oldest_first = await emoji_store.list_of(conn, found.id, after=page.after, limit=page.reach)
        selected = page.cut(oldest_first, position=lambda each: each.id)
        accounts = await find_accounts(conn, [each.user_id for each in selected])
        base_url = conn.hub.settings.base_url
        return [UserReaction.of(each, accounts, base_url=base_url) for each in selected]

    list_emoji.__name__ = f"list_{kind.name}_comment_emoji"
    list_emoji.__doc__ = f"List who reacted to a comment {kind.phrase}, oldest first, page by page."
    router.get(_PATH, responses=PAGED_RESPONSES)(list_emoji)


def _add_changes(router: Router, kind: ReactionThreads) -> None:
    async def add(
        *,
        conn: Conn,
        caller: AnyCaller,
        place: ThreadInContext = Depends(kind.to_add),
        comment: str,
        reaction: Emoji,
    ) -> CommentReactions:
        return _render(await emoji.add(conn, caller, place, comment, reaction))

    async def remove(
        *,
        conn: Conn,
        caller: AnyCaller,
        place: ThreadInContext = Depends(kind.to_remove),
        comment: str,
        reaction: Emoji,
    ) -> CommentReactions:
        return _render(await emoji.remove(conn, caller, place, comment, reaction))

    again = "doing it again changes nothing."
    add.__name__ = f"add_{kind.name}_comment_emoji"
    add.__doc__ = f"React to a comment {kind.phrase} with an emoji; {again}"
    remove.__name__ = f"remove_{kind.name}_comment_emoji"
    remove.__doc__ = f"Take back one's emoji from a comment {kind.phrase}; {again}"
    router.post(f"{_PATH}/{{reaction}}", responses=_HIDDEN)(add)
    router.delete(f"{_PATH}/{{reaction}}")(remove)


def _render(counts: Sequence[EmojiCount]) -> CommentReactions:
    return CommentReactions(reactions=[ReactionCount.of(each) for each in counts])
