"""Comments in public threads: who may comment, reply, edit, hide and mute."""

from collections.abc import Sequence

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji
from hublet.community.comment_schemas import CommentEvent, NewComment, UpdatedComment, author_ids
from hublet.community.errors import CannotReplyToHidden, NotYourComment, ThreadNotFound
from hublet.community.threads import service as threads
from hublet.community.threads import store
from hublet.community.threads.records import Comment, PublicThreadRights, Thread, ThreadKind
from hublet.community.threads.service import ThreadContext
from hublet.core.database import Connection, Reader
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope, TokenRole


async def _everybody_may_read(_conn: Reader, _user_id: str) -> bool:
    return True


# Papers, posts and blogs are public: every user who is mentioned in one may read it.
PUBLIC_CONTEXT = ThreadContext(may_read=_everybody_may_read)


def rights_of(caller: Caller | None, thread: Thread, *, owns_thread: bool) -> PublicThreadRights:
    """Return what the caller may do, by the rules that hold when it is done."""
    if caller is None:
        return PublicThreadRights()
    may_comment = caller.may(Scope.write_discussions, on=thread.owner_id or "")
    is_administrator = is_hub_administrator(caller)
    return PublicThreadRights(
        may_discuss=may_comment,
        may_comment=may_comment,
        may_write=may_comment and (owns_thread or is_administrator),
        may_edit=owns_thread and thread.kind is ThreadKind.blog,
        may_delete=owns_thread or is_administrator,
    )


async def lock_thread(conn: Connection, thread: Thread) -> Thread:
    """Lock the thread until the transaction ends; return it as it is now."""
    await conn.lock(f"thread {thread.id}")
    current = await store.find(conn, thread.id)
    if current is None:
        raise ThreadNotFound(thread.kind)
    return current


async def lock_thread_as_writer(conn: Connection, caller: Caller, thread: Thread) -> Thread:
    """Lock the thread for a caller whose token may write there."""
    # A scope that holds only for what one account owns does not open other threads; a paper
    # belongs to no account.
    if not caller.may(Scope.write_discussions, on=thread.owner_id or ""):
        raise ScopeNeeded([Scope.write_discussions])
    return await lock_thread(conn, thread)


async def comment(conn: Connection, caller: Caller, thread: Thread, raw: str) -> Comment:
    thread = await lock_thread_as_writer(conn, caller, thread)
    return await threads.add_comment(
        conn, thread, PUBLIC_CONTEXT, author_id=caller.user_id, raw=raw
    )


async def reply(
    conn: Connection, caller: Caller, thread: Thread, parent_id: str, raw: str
) -> Comment:
    """Answer a comment that is not hidden."""
    thread = await lock_thread_as_writer(conn, caller, thread)
    parent = await threads.get_comment(conn, thread, parent_id)
    if parent.hidden:
        raise CannotReplyToHidden
    return await threads.add_comment(
        conn, thread, PUBLIC_CONTEXT, author_id=caller.user_id, raw=raw, parent_id=parent.id
    )


async def edit(
    conn: Connection, caller: Caller, thread: Thread, comment_id: str, raw: str
) -> Comment:
    thread = await lock_thread_as_writer(conn, caller, thread)
    comment = await threads.get_comment(conn, thread, comment_id)
    if comment.author_id != caller.user_id:
        raise NotYourComment("edit")
    return await threads.edit_comment(
        conn, thread, PUBLIC_CONTEXT, comment, actor_id=caller.user_id, raw=raw
    )


async def hide(
    conn: Connection, caller: Caller, thread: Thread, comment_id: str, *, owns_thread: bool
) -> Comment:
    """Hide a comment: one's own, any in one's own thread, any at all for hub administrators."""
    thread = await lock_thread_as_writer(conn, caller, thread)
    comment = await threads.get_comment(conn, thread, comment_id)
    if comment.author_id != caller.user_id and not owns_thread and not is_hub_administrator(caller):
        raise NotYourComment("hide")
    return await threads.hide_comment(
        conn, thread, PUBLIC_CONTEXT, comment, actor_id=caller.user_id
    )


async def mute(conn: Connection, caller: Caller, thread: Thread, *, muted: bool) -> None:
    """Stop the notifications of a thread for the caller, or resume them."""
    thread = await lock_thread(conn, thread)
    await store.set_muted(conn, thread.id, user_id=caller.user_id, muted=muted)


def is_hub_administrator(caller: Caller) -> bool:
    """Tell whether the caller is a hub administrator, with a token that may write everything."""
    return caller.is_admin and caller.token.role is TokenRole.write


async def render(conn: Reader, comments: Sequence[Comment]) -> list[CommentEvent]:
    accounts = await find_accounts(conn, author_ids(comments))
    counts = await emoji.counts_of(conn, comments)
    base_url = conn.hub.settings.base_url
    return [
        CommentEvent.of(each, accounts, base_url=base_url, emoji=counts.get(each.id, ()))
        for each in comments
    ]


async def render_new(conn: Reader, comment: Comment) -> NewComment:
    return NewComment(newMessage=(await render(conn, [comment]))[0])


async def render_updated(conn: Reader, comment: Comment) -> UpdatedComment:
    return UpdatedComment(updatedComment=(await render(conn, [comment]))[0])
