"""Service of inboxes: delivers items, selects them by filters, marks and deletes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import MISSING

from hublet.accounts.names import name_key
from hublet.core.clock import to_micros
from hublet.core.database import Connection, Reader
from hublet.notifications.inbox import read_store, store
from hublet.notifications.inbox.conditions import Condition, chosen_by, in_inbox, in_inboxes
from hublet.notifications.inbox.schemas import ChangeFilters, Filters
from hublet.notifications.inbox.store import CountChange
from hublet.notifications.records import (
    BLOG,
    HUB,
    PAPER,
    POST,
    InboxChange,
    InboxItem,
    Involvement,
    Selection,
)
from hublet.repos.records import RepoType

# The involvement that a word of the interface asks for.
LEAST = {
    "all": Involvement.watched,
    "participating": Involvement.participating,
    "mentions": Involvement.mentioned,
}


async def deliver(conn: Connection, item: InboxItem, recipients: Mapping[str, Involvement]) -> None:
    """Put an item into inboxes as unread, whether it is new there, was read, or was deleted.

    Where it is unread already it keeps leading to the first thing that was not seen. Up to some
    hundred recipients, and once in a transaction: inboxes are locked in the order of their ids.
    """
    if not recipients:
        return
    await store.lock(conn, recipients, arrival=True)
    chosen = in_inboxes(recipients).also("thread_id = ?", item.thread_id)
    emptied = await store.change_counts(conn, chosen, CountChange.removed)
    await store.put_item(conn, item, recipients)
    await store.change_counts(conn, chosen, CountChange.added)
    await store.remove_empty_counts(conn, emptied)


async def involve(conn: Connection, thread_id: str, user_id: str, involvement: Involvement) -> None:
    """Raise the involvement of a user in a thread that is in the inbox.

    The caller has locked what puts threads into inboxes: what is not there now does not come.
    """
    chosen = in_inbox(user_id).also("thread_id = ?", thread_id)
    lower = chosen.also("involvement < ?", involvement)
    # Mostly there is nothing to raise, and to lock the inbox is a write.
    if not await store.is_any(conn, lower):
        return
    await store.lock(conn, [user_id])
    emptied = await store.change_counts(conn, lower, CountChange.removed)
    if await store.raise_involvement(conn, lower, involvement):
        await store.change_counts(conn, chosen, CountChange.added)
        await store.remove_empty_counts(conn, emptied)


async def remove_thread(conn: Connection, *, thread_id: str, user_ids: Sequence[str]) -> None:
    """Remove a thread from these inboxes."""
    await _remove_from(conn, user_ids, in_inboxes(user_ids).also("thread_id = ?", thread_id))


async def remove_place(conn: Connection, place_id: str, *, user_ids: Sequence[str]) -> None:
    """Remove all that is in a repository, or was posted by an account, from these inboxes."""
    await _remove_from(conn, user_ids, in_inboxes(user_ids).also("place_id = ?", place_id))


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


async def count_unread(conn: Reader, user_id: str) -> int:
    """Return how many items of an inbox are unread, from the stored counts."""
    return await read_store.count_unread(conn, user_id)


async def count_unread_and_find_watch(
    conn: Reader, user_id: str, *, repo_id: str
) -> tuple[int, bool]:
    """Return what `count_unread` does, and whether the user watches a repository."""
    return await read_store.count_unread_and_find_watch(conn, user_id, target_id=repo_id)


async def select(
    conn: Reader, user_id: str, filters: Filters, *, except_owners: frozenset[str] = frozenset()
) -> Selection:
    """Return the selection of the filters. A name that nobody has, or a hidden one, selects none."""
    selection = Selection(
        least=LEAST[filters.mention],
        unread=filters.readStatus == "unread",
        except_owners=except_owners,
    )
    if filters.lastUpdate is not MISSING:
        selection = replace(selection, until=to_micros(filters.lastUpdate))
    selection = await _select_repos(conn, user_id, filters, selection)
    selection = await _select_author(conn, filters, selection)
    return await _select_threads(conn, filters, selection)


async def select_for_change(
    conn: Reader,
    user_id: str,
    filters: ChangeFilters,
    *,
    thread_ids: Sequence[str],
    except_owners: frozenset[str] = frozenset(),
) -> Selection:
    """Return the selection of a change: all that the filters match, or these threads of it."""
    selection = await select(conn, user_id, filters, except_owners=except_owners)
    if filters.applyToAll == "true":
        return selection
    # Without ids that is nothing: a bare request never empties an inbox.
    return selection.of_threads(thread_ids)


async def _select_repos(
    conn: Reader, user_id: str, filters: Filters, selection: Selection
) -> Selection:
    types = list(RepoType)
    if filters.repoType is not MISSING:
        types = [filters.repoType]
        selection = selection.of_type(filters.repoType)
    if filters.repoName is not MISSING:
        named = await read_store.list_repos_named(conn, filters.repoName, types, user_id=user_id)
        selection = selection.in_places(named)
    return selection


async def _select_author(conn: Reader, filters: Filters, selection: Selection) -> Selection:
    if filters.postAuthor is MISSING:
        return selection
    author = filters.postAuthor
    named = [HUB] if name_key(author) == HUB else await read_store.list_accounts_named(conn, author)
    return selection.of_type(POST).in_places(named)


async def _select_threads(conn: Reader, filters: Filters, selection: Selection) -> Selection:
    if filters.paperId is not MISSING:
        named = await read_store.list_papers_named(conn, filters.paperId)
        selection = selection.of_type(PAPER).of_threads(named)
    if filters.articleId is not MISSING:
        named = await read_store.list_blogs_named(conn, filters.articleId)
        selection = selection.of_type(BLOG).of_threads(named)
    return selection


async def narrow(
    conn: Reader,
    user_id: str,
    selection: Selection,
    *,
    search: str = "",
    only_finished: bool = False,
) -> Selection:
    """Return those of a selection whose title has a text, or that are unread and merged or closed."""
    if search:
        selection = selection.of_threads(await read_store.list_titled(conn, user_id, search))
    if only_finished:
        selection = selection.of_threads(await read_store.list_finished(conn, user_id))
    return selection


async def limit_to_now(conn: Reader, user_id: str, selection: Selection) -> Selection:
    """Limit a selection to what is in the inbox now, without what comes later."""
    newest = await store.last_at(conn, user_id)
    return replace(selection, until=min(selection.until, newest))


async def mark(conn: Connection, user_id: str, selection: Selection, *, read: bool) -> int:
    """Mark the selected items that are not marked so yet; return how many."""
    if selection.empty:
        return 0
    await store.lock(conn, [user_id])
    differing = chosen_by(user_id, selection).also("NOT read" if read else "read")
    with conn.in_bulk():
        await store.change_counts(
            conn, differing, CountChange.marked_read if read else CountChange.marked_unread
        )
        return await store.set_read(conn, differing, read=read)


async def restore(conn: Connection, change: InboxChange) -> int:
    """Undo how a change marked items, but for those that something else has changed since."""
    await store.lock(conn, [change.user_id])
    chosen = (
        in_inbox(change.user_id)
        .also(
            "thread_id IN (SELECT i.thread_id FROM inbox_change_items i "
            "WHERE i.change_id = ? AND i.marked)",
            change.id,
        )
        .also("updated_at <= ?", change.last_at)
        .also("read" if change.read else "NOT read")
    )
    with conn.in_bulk():
        await store.change_counts(
            conn, chosen, CountChange.marked_unread if change.read else CountChange.marked_read
        )
        return await store.restore_items(conn, chosen, change)


async def delete(conn: Connection, user_id: str, selection: Selection) -> int:
    """Delete the selected items; a new event in the same thread brings it back."""
    if selection.empty:
        return 0
    return await _remove_from(conn, [user_id], chosen_by(user_id, selection))


async def _remove_from(conn: Connection, user_ids: Sequence[str], chosen: Condition) -> int:
    if not user_ids:
        return 0
    await store.lock(conn, user_ids)
    with conn.in_bulk():
        emptied = await store.change_counts(conn, chosen, CountChange.removed)
        removed = await store.remove(conn, chosen)
        await store.remove_empty_counts(conn, emptied)
    return removed
