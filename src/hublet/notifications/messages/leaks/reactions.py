"""Looks for credentials after something was brought into a public repository, in the worker."""

import msgspec

from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_to
from hublet.core.queue import NewTask, add, handles_slowly
from hublet.events import RepoContentUpdated
from hublet.notifications.messages.leaks import service
from hublet.notifications.messages.leaks.records import Search

LOOK = "notifications.look-for-credentials"


@reacts_to(RepoContentUpdated)
async def plan_a_look(conn: Connection, event: RepoContentUpdated) -> None:
    wanted = Search(
        repo_id=event.repo.id, updated_refs=event.updated_refs, head_sha=event.repo.head_sha
    )
    if not event.repo.private and wanted.starts:
        await add(conn, NewTask(kind=LOOK, body=msgspec.json.encode(wanted).decode()))


@handles_slowly(LOOK, reads=Search)
async def look(database: Database, wanted: Search) -> None:
    await service.look(database, wanted)
