"""What happened in a thread, in words."""

from collections.abc import Sequence

from hublet.community.authors.store import find_accounts
from hublet.community.threads import store as threads
from hublet.community.threads.records import Change, Comment, Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass

# What one mail shows; the thread itself has the rest.
MOST = 20
_LONGEST_TEXT = 10_000

_STATUS = {"open": "opened it again", "closed": "closed it", "merged": "merged it"}
_OPENED = {
    ThreadKind.paper: "submitted this paper",
    ThreadKind.post: "published this post",
    ThreadKind.blog: "published this blog",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    event_id: str
    # The name of whoever did it.
    author: str
    # Completes "ada …".
    did: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deed:
    event_id: str
    author_id: str | None
    did: str
    text: str | None = None


async def list_happenings(
    conn: Reader, thread: Thread, event_ids: Sequence[str]
) -> list[Happening]:
    """Return the last of these events in words; what is hidden or gone is left out."""
    deeds = [
        deed
        for event_id in event_ids[-MOST:]
        if (deed := await _deed(conn, thread, event_id)) is not None
    ]
    accounts = await find_accounts(conn, [deed.author_id for deed in deeds])
    return [
        Happening(
            event_id=deed.event_id,
            author=accounts[deed.author_id].name if deed.author_id in accounts else "somebody",
            did=deed.did,
            text=None if deed.text is None else _cut(deed.text),
        )
        for deed in deeds
    ]


async def _deed(conn: Reader, thread: Thread, event_id: str) -> _Deed | None:
    if event_id == thread.id:
        return _opening(thread)
    comment = await threads.find_comment(conn, event_id, thread_id=thread.id)
    if comment is not None:
        return None if comment.hidden else await _saying(conn, thread, comment)
    changes = {change.id: change for change in await threads.list_changes(conn, thread.id)}
    return _doing(changes[event_id]) if event_id in changes else None


def _opening(thread: Thread) -> _Deed:
    did = _OPENED.get(thread.kind, "opened this")
    author_id = thread.author_id or thread.owner_id
    return _Deed(event_id=thread.id, author_id=author_id, did=did, text=thread.body)


async def _saying(conn: Reader, thread: Thread, comment: Comment) -> _Deed:
    first = await threads.list_comments(conn, thread.id, limit=1)
    opens = thread.kind is ThreadKind.discussion and first[0].id == comment.id
    noun = "pull request" if thread.is_pull_request else "discussion"
    did = f"opened this {noun}" if opens else "commented"
    return _Deed(event_id=comment.id, author_id=comment.author_id, did=did, text=comment.raw)


def _doing(change: Change) -> _Deed:
    match change.type:
        case "status-change":
            did = _STATUS.get(change.data["status"], "changed its status")
        case "title-change":
            did = "renamed it"
        case "commit":
            did = f"pushed a commit: {change.data['subject']}"
        case _:
            did = "changed it"
    return _Deed(event_id=change.id, author_id=change.author_id, did=did)


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT].rstrip() + " …"
