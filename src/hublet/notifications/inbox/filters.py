"""Filters of the inbox: what each one selects; those that contradict each other select nothing."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import MISSING

from hublet.accounts.names import name_key
from hublet.core.clock import to_micros
from hublet.core.database import Reader
from hublet.notifications.errors import EitherIdsOrAll
from hublet.notifications.inbox import read_store
from hublet.notifications.inbox.records import Selection
from hublet.notifications.inbox.schemas import ChangeFilters, Filters
from hublet.notifications.records import BLOG, HUB, PAPER, POST, Involvement
from hublet.repos.records import RepoType

_LEAST = {
    "all": Involvement.watched,
    "participating": Involvement.participating,
    "mentions": Involvement.mentioned,
}


async def select(conn: Reader, user_id: str, filters: Filters) -> Selection:
    """Return what the filters select. A name that nobody has, or a hidden one, selects nothing."""
    selection = Selection(least=_LEAST[filters.mention], unread=filters.readStatus == "unread")
    if filters.lastUpdate is not MISSING:
        selection = replace(selection, until=to_micros(filters.lastUpdate))
    selection = await _select_repos(conn, user_id, filters, selection)
    selection = await _select_author(conn, filters, selection)
    return await _select_threads(conn, filters, selection)


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


async def select_for_change(
    conn: Reader, user_id: str, filters: ChangeFilters, *, thread_ids: Sequence[str]
) -> Selection:
    """Return what a change is to touch: these threads or all of them, as far as filters let."""
    if bool(thread_ids) is (filters.applyToAll == "true"):
        raise EitherIdsOrAll
    selection = await select(conn, user_id, filters)
    return selection.of_threads(thread_ids) if thread_ids else selection
