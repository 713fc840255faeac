"""Changes of an inbox that can be undone for an hour: items marked as read or unread, threads muted."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.notifications import watches, watches_store
from hublet.notifications.errors import ChangeGone, TooManyToMute
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox import store
from hublet.notifications.inbox.conditions import Condition, chosen_by
from hublet.notifications.records import InboxChange, MuteType, Selection, SubscriptionTarget
from hublet.notifications.watch_schemas import MOST_PER_REQUEST

UNDO_WITHIN = timedelta(hours=1)


class InboxVerb(StrEnum):
    """What can be done with items. The interface calls what is done read."""

    done = "done"
    unread = "unread"
    mute = "mute"


async def apply(
    conn: Connection, user_id: str, verb: InboxVerb, selection: Selection
) -> InboxChange | None:
    """Do this with the selected items, as far as they are there now; None if nothing changed.

    What is muted is marked as read too; messages of the hub are only marked.
    """
    if verb is InboxVerb.mute:
        return await _change(conn, user_id, selection, _mute)
    return await _change(conn, user_id, selection, _mark_read if verb == "done" else _mark_unread)


async def find(conn: Reader, change_id: str, *, user_id: str) -> InboxChange | None:
    """Return a change that can still be undone."""
    return await store.find_change(conn, change_id, user_id=user_id, since=_oldest())


async def undo(conn: Connection, change_id: str, *, user_id: str) -> InboxChange:
    """Restore what a change marked and muted, and nothing that came or was changed since."""
    await store.lock(conn, [user_id])
    change = await find(conn, change_id, user_id=user_id)
    if change is None:
        raise ChangeGone
    if change.marked:
        await inbox.restore(conn, change)
    if change.muted:
        muted = _targets(await store.list_muted_by_change(conn, change.id))
        await watches.mute(conn, user_id=user_id, delete=muted, add=[])
    await store.remove_change(conn, change.id)
    return change


_Step = Callable[[Connection, InboxChange, Selection], Awaitable[int]]


async def _change(
    conn: Connection, user_id: str, selection: Selection, step: _Step
) -> InboxChange | None:
    if selection.empty:
        return None
    await store.lock(conn, [user_id])
    await store.remove_old_changes(conn, user_id, before=_oldest())
    last_at = await store.last_at(conn, user_id)
    change = InboxChange(
        id=new_object_id(), user_id=user_id, read=step is not _mark_unread, last_at=last_at
    )
    await store.add_change(conn, change)
    changed = await step(conn, change, replace(selection, until=min(selection.until, last_at)))
    if not changed:
        await store.remove_change(conn, change.id)
        return None
    return await find(conn, change.id, user_id=user_id)


async def _mark_read(conn: Connection, change: InboxChange, selection: Selection) -> int:
    return await _mark(
        conn, change, selection, chosen_by(change.user_id, selection).also("NOT read")
    )


async def _mark_unread(conn: Connection, change: InboxChange, selection: Selection) -> int:
    return await _mark(conn, change, selection, chosen_by(change.user_id, selection).also("read"))


async def _mark(
    conn: Connection, change: InboxChange, selection: Selection, differing: Condition
) -> int:
    await store.note_changed_items(conn, change.id, differing, muted=False)
    return await inbox.mark(conn, change.user_id, selection, read=change.read)


async def _mute(conn: Connection, change: InboxChange, selection: Selection) -> int:
    chosen = chosen_by(change.user_id, selection)
    if await store.note_changed_items(conn, change.id, chosen, muted=True) > MOST_PER_REQUEST:
        raise TooManyToMute(MOST_PER_REQUEST)
    ids = await store.list_muted_by_change(conn, change.id)
    # What is hidden by now leaves the inbox when it is next shown.
    visible = await watches_store.find_visible(conn, ids, user_id=change.user_id)
    muted = [each for each in _targets(ids) if (each.type, each.id) in visible]
    await watches.mute(conn, user_id=change.user_id, delete=[], add=muted)
    return len(muted) + await inbox.mark(conn, change.user_id, selection, read=True)


def _targets(thread_ids: list[str]) -> list[SubscriptionTarget]:
    return [SubscriptionTarget(type=MuteType.thread, id=each) for each in thread_ids]


def _oldest() -> int:
    return to_micros(now() - UNDO_WITHIN)
