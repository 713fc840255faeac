"""Rules of a page: what is on it, and that nobody sees what they may not see any more."""

from dataclasses import field
from typing import Any

from hublet.core.database import Connection, Database, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.listing import store
from hublet.notifications.inbox.listing.showing import (
    item_of_message,
    item_of_thread,
    participants_by_thread,
)
from hublet.notifications.inbox.listing.store import PAGE
from hublet.notifications.inbox.records import Entry, Listed, Selection
from hublet.notifications.inbox.seeing import may_see

# What may not be seen any more is taken out a page at a time; so often before an answer.
_ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What has to leave an inbox: threads, and repositories with all that is in them."""

    threads: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.threads or self.places)


async def read_page(
    database: Database, user_id: str, selection: Selection, *, page: int
) -> dict[str, Any]:
    """Return a page as the interface shows it.

    Items whose thread is gone, or whose repository the user may not see any more, leave the
    inbox on the way.
    """
    rounds = 0
    while True:
        async with database.read() as conn:
            listed = await _listed(conn, user_id, selection, page)
            items, hidden = await _shown(conn, user_id, listed.entries)
        if not hidden or rounds == _ROUNDS:
            break
        rounds += 1
        async with database.transaction() as conn:
            await _take_out(conn, user_id, hidden)
    view = listed.unread if selection.unread else listed.total
    count = {"view": view, "unread": listed.unread, "all": listed.total}
    return {"notifications": items, "count": count, "start": page * PAGE}


async def _listed(conn: Reader, user_id: str, selection: Selection, page: int) -> Listed:
    if selection.empty:
        return Listed(entries=[], total=0, unread=0)
    return await store.page(conn, user_id, selection, skip=page * PAGE)


async def _shown(
    conn: Reader, user_id: str, entries: list[Entry]
) -> tuple[list[dict[str, Any]], Hidden]:
    """Return the items of those entries that the user may see, and which ones are not such."""
    hidden = Hidden()
    if not entries:
        return [], hidden
    ids = [entry.thread_id for entry in entries]
    threads = await store.list_subjects(conn, ids, user_id=user_id)
    missing = [thread_id for thread_id in ids if thread_id not in threads]
    messages = await store.list_messages(conn, missing, user_id=user_id) if missing else {}
    participants = participants_by_thread(
        await store.list_participants(conn, list(threads)),
        base_url=conn.hub.settings.base_url,
    )
    items = []
    for entry in entries:
        if (message := messages.get(entry.thread_id)) is not None:
            items.append(item_of_message(entry, message))
        elif (thread := threads.get(entry.thread_id)) is None:
            hidden.threads.append(entry.thread_id)
        elif thread["repo_id"] is not None and not may_see(thread, user_id):
            hidden.places.add(thread["repo_id"])
        else:
            items.append(item_of_thread(entry, thread, participants))
    return items, hidden


async def _take_out(conn: Connection, user_id: str, hidden: Hidden) -> None:
    await inbox.delete(conn, user_id, Selection().in_places(hidden.places))
    await inbox.delete(conn, user_id, Selection().of_threads(hidden.threads))
