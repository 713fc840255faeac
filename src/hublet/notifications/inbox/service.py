"""Service of inboxes: what comes in, what is read, what leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hublet.core.database import Connection, Reader
from hublet.notifications.inbox import store
from hublet.notifications.inbox.conditions import Condition, chosen_by, in_inbox, in_inboxes
from hublet.notifications.inbox.records import Selection
from hublet.notifications.inbox.store import CountChange
from hublet.notifications.records import InboxItem, Involvement


async def deliver(conn: Connection, item: InboxItem, recipients: Mapping[str, Involvement]) -> None:
    """Put an item into inboxes as unread, whether it is new there, was read, or was deleted.

    Where it is unread already it keeps leading to the first thing that was not seen. Up to some
    hundred recipients, and once in a transaction: inboxes are held in the order of their ids.
    """
    if not recipients:
        return
    await store.lock(conn, recipients, arrival=True)
    chosen = in_inboxes(recipients).also("thread_id = ?", item.thread_id)
    emptied = await store.change_counts(conn, chosen, CountChange.leave)
    await store.put_item(conn, item, recipients)
    await store.change_counts(conn, chosen, CountChange.come)
    await store.remove_empty_counts(conn, emptied)


async def involve(conn: Connection, thread_id: str, user_id: str, involvement: Involvement) -> None:
    """Note in an item that is in the inbox that its user has more to do with it now."""
    await store.lock(conn, [user_id])
    chosen = in_inbox(user_id).also("thread_id = ?", thread_id)
    lower = chosen.also("involvement < ?", involvement)
    emptied = await store.change_counts(conn, lower, CountChange.leave)
    if await store.raise_involvement(conn, lower, involvement):
        await store.change_counts(conn, chosen, CountChange.come)
        await store.remove_empty_counts(conn, emptied)


async def remove_thread(conn: Connection, *, thread_id: str, user_ids: Sequence[str]) -> None:
    """Take a thread out of these inboxes."""
    await _remove_from(conn, user_ids, in_inboxes(user_ids).also("thread_id = ?", thread_id))


async def remove_place(conn: Connection, place_id: str, *, user_ids: Sequence[str]) -> None:
    """Take all that is in a repository, or was posted by an account, out of these inboxes."""
    await _remove_from(conn, user_ids, in_inboxes(user_ids).also("place_id = ?", place_id))


async def _remove_from(conn: Connection, user_ids: Sequence[str], chosen: Condition) -> int:
    if not user_ids:
        return 0
    await store.lock(conn, user_ids)
    with conn.in_bulk():
        emptied = await store.change_counts(conn, chosen, CountChange.leave)
        removed = await store.remove(conn, chosen)
        await store.remove_empty_counts(conn, emptied)
    return removed


async def list_users_with(
    conn: Reader,
    *,
    thread_id: str | None = None,
    place_id: str | None = None,
    after: str,
    limit: int,
) -> list[str]:
    """Return who has a thread, or else anything of a place, in the inbox, in the order of ids."""
    if thread_id is not None:
        return await store.list_users_with_thread(conn, thread_id, after=after, limit=limit)
    return await store.list_users_with_place(conn, place_id or "", after=after, limit=limit)


async def limit_to_now(conn: Reader, user_id: str, selection: Selection) -> Selection:
    """Bind a selection to what is there now: nothing that comes later is ever meant."""
    newest = await store.last_at(conn, user_id)
    return replace(selection, until=min(selection.until, newest))


async def mark(conn: Connection, user_id: str, selection: Selection, *, read: bool) -> int:
    """Mark what is selected and not marked so; return how many items that were."""
    if selection.empty:
        return 0
    await store.lock(conn, [user_id])
    differing = chosen_by(user_id, selection).also("NOT read" if read else "read")
    with conn.in_bulk():
        await store.change_counts(
            conn, differing, CountChange.become_read if read else CountChange.become_unread
        )
        return await store.set_read(conn, differing, read=read)


async def delete(conn: Connection, user_id: str, selection: Selection) -> int:
    """Delete what is selected for good; something new in the same thread brings it back."""
    if selection.empty:
        return 0
    return await _remove_from(conn, [user_id], chosen_by(user_id, selection))
