"""Reactions of search: every change of what can be found schedules its document, in its transaction."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from hublet.community.threads.records import ThreadKind
from hublet.core.database import Connection, Database
from hublet.core.outbox import Event, reacts_in_transaction_to
from hublet.core.queue import handles_slowly
from hublet.events import (
    CollectionCreated,
    CollectionDeleted,
    CollectionUpdated,
    CommentCreated,
    CommentUpdated,
    OrganizationCreated,
    OrganizationUpdated,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoCreated,
    RepoDeleted,
    RepoLiked,
    RepoMoved,
    ThreadCreated,
    ThreadDeleted,
    ThreadUpdated,
    UserCreated,
    UserDisabled,
    UserEnabled,
    UserFollowed,
    UserUpdated,
)
from hublet.repos.records import MAIN
from hublet.search import index, text_index
from hublet.search.index import Refresh
from hublet.search.records import IndexSource

# Where the document of an event comes from, and its id there.
_TARGETS: dict[type[Event], tuple[IndexSource, Callable[[Any], str]]] = {
    **dict.fromkeys(
        (RepoCreated, RepoConfigUpdated, RepoContentUpdated, RepoMoved, RepoDeleted, RepoLiked),
        (IndexSource.repo, attrgetter("repo.id")),
    ),
    **dict.fromkeys(
        (UserCreated, UserUpdated, UserDisabled, UserEnabled),
        (IndexSource.account, attrgetter("user_id")),
    ),
    **dict.fromkeys(
        (OrganizationCreated, OrganizationUpdated),
        (IndexSource.account, attrgetter("organization_id")),
    ),
    UserFollowed: (IndexSource.account, attrgetter("account_id")),
    **dict.fromkeys(
        (ThreadCreated, ThreadUpdated, ThreadDeleted),
        (IndexSource.thread, attrgetter("thread.id")),
    ),
    **dict.fromkeys(
        (CommentCreated, CommentUpdated), (IndexSource.comment, attrgetter("comment.id"))
    ),
    **dict.fromkeys(
        (CollectionCreated, CollectionUpdated, CollectionDeleted),
        (IndexSource.collection, attrgetter("collection_id")),
    ),
}

# What changes the document of a collection: its items are found for themselves.
_OF_COLLECTIONS = {"title", "description", "private", "resourceGroup", "upvotes"}


async def schedule_refresh(conn: Connection, event: Event) -> None:
    if _changes_document(event):
        source, id_of = _TARGETS[type(event)]
        await index.schedule_refresh(conn, source, id_of(event))


for _event_type in _TARGETS:
    reacts_in_transaction_to(_event_type)(schedule_refresh)


def _changes_document(event: Event) -> bool:
    if isinstance(event, RepoContentUpdated):
        moves_main = any(updated.ref == MAIN for updated in event.updated_refs)
        return moves_main and event.may_change(text_index.FILES)
    if isinstance(event, CommentCreated | CommentUpdated):
        return event.thread.kind in text_index.KINDS
    if isinstance(event, ThreadUpdated) and event.thread.kind == ThreadKind.discussion:
        return "title" in event.changed
    if isinstance(event, CollectionUpdated):
        return bool(_OF_COLLECTIONS & set(event.changed))
    return True


@handles_slowly(index.REFRESH, reads=Refresh)
async def refresh_document(database: Database, refresh: Refresh) -> None:
    if refresh.source is not IndexSource.comment:
        await index.refresh(database, refresh.source, [refresh.target_id])
    await text_index.refresh(database, refresh.source, [refresh.target_id])


@handles_slowly(index.FILL)
async def fill_index(database: Database, _body: dict[str, Any]) -> None:
    await index.FILLING.run(database)


@handles_slowly(text_index.FILL)
async def fill_texts(database: Database, _body: dict[str, Any]) -> None:
    await text_index.FILLING.run(database)
