"""Comments with the names of those who wrote them."""

from collections.abc import Sequence

from hublet.community.authors.store import find_accounts
from hublet.community.threads.records import Comment
from hublet.community.threads.schemas import CommentEvent, NewComment, UpdatedComment, authors_of
from hublet.core.database import Reader


async def show(conn: Reader, comments: Sequence[Comment]) -> list[CommentEvent]:
    accounts = await find_accounts(conn, authors_of(comments))
    base_url = conn.hub.settings.base_url
    return [CommentEvent.of(comment, accounts, base_url=base_url) for comment in comments]


async def added(conn: Reader, comment: Comment) -> NewComment:
    return NewComment(newMessage=(await show(conn, [comment]))[0])


async def updated(conn: Reader, comment: Comment) -> UpdatedComment:
    return UpdatedComment(updatedComment=(await show(conn, [comment]))[0])
