"""Rules of threads that everybody can read: who comments, answers, edits, hides and mutes."""

from hublet.community.commenting.errors import CannotAnswerHidden
from hublet.community.threads import service as threads
from hublet.community.threads import store
from hublet.community.threads.errors import NotYourComment, ThreadNotFound
from hublet.community.threads.records import Comment, Thread
from hublet.community.threads.service import Place
from hublet.core.database import Connection, Reader
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope, TokenRole


async def _everybody(_conn: Reader, _user_id: str) -> bool:
    return True


# Papers, posts and blogs have no walls: whoever is mentioned in one may read it.
PUBLIC = Place(may_read=_everybody)


async def hold(conn: Connection, thread: Thread) -> Thread:
    """Let nobody else change the thread until the end; return it as it is now."""
    await conn.lock(f"thread {thread.id}")
    found = await store.find(conn, thread.id)
    if found is None:
        raise ThreadNotFound(thread.kind)
    return found


async def hold_as_writer(conn: Connection, caller: Caller, thread: Thread) -> Thread:
    """Hold the thread for somebody whose token may write there."""
    # A scope that holds only for what one account owns does not open other threads; a paper
    # belongs to no account.
    if not caller.may(Scope.write_discussions, on=thread.owner_id or ""):
        raise ScopeNeeded([Scope.write_discussions])
    return await hold(conn, thread)


async def comment(conn: Connection, caller: Caller, thread: Thread, raw: str) -> Comment:
    thread = await hold_as_writer(conn, caller, thread)
    return await threads.add_comment(conn, thread, PUBLIC, author_id=caller.user_id, raw=raw)


async def reply(
    conn: Connection, caller: Caller, thread: Thread, parent_id: str, raw: str
) -> Comment:
    """Answer a comment that can still be read."""
    thread = await hold_as_writer(conn, caller, thread)
    parent = await threads.get_comment(conn, thread, parent_id)
    if parent.hidden:
        raise CannotAnswerHidden
    return await threads.add_comment(
        conn, thread, PUBLIC, author_id=caller.user_id, raw=raw, parent_id=parent.id
    )


async def edit(
    conn: Connection, caller: Caller, thread: Thread, comment_id: str, raw: str
) -> Comment:
    thread = await hold_as_writer(conn, caller, thread)
    found = await threads.get_comment(conn, thread, comment_id)
    if found.author_id != caller.user_id:
        raise NotYourComment("edit")
    return await threads.edit_comment(conn, thread, PUBLIC, found, actor_id=caller.user_id, raw=raw)


async def hide(
    conn: Connection, caller: Caller, thread: Thread, comment_id: str, *, owns_thread: bool
) -> Comment:
    """Hide a comment: one's own, any in one's own thread, any at all for hub administrators."""
    thread = await hold_as_writer(conn, caller, thread)
    found = await threads.get_comment(conn, thread, comment_id)
    if found.author_id != caller.user_id and not owns_thread and not administers(caller):
        raise NotYourComment("hide")
    return await threads.hide_comment(conn, thread, PUBLIC, found, actor_id=caller.user_id)


async def mute(conn: Connection, caller: Caller, thread: Thread, *, muted: bool) -> None:
    """Let the caller hear nothing more of a thread, or hear of it again."""
    thread = await hold(conn, thread)
    await store.set_muted(conn, thread.id, user_id=caller.user_id, muted=muted)


def administers(caller: Caller) -> bool:
    """Tell whether the caller looks after the whole hub; only a full token reaches that far."""
    return caller.is_admin and caller.token.role is TokenRole.write
