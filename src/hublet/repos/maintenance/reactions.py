"""What happens to a bare repository after it changed, in the worker."""

from typing import Any

from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_to
from hublet.core.queue import handles_slowly
from hublet.events import RepoContentUpdated
from hublet.repos.maintenance import service


@reacts_to(RepoContentUpdated)
async def plan_packing(conn: Connection, event: RepoContentUpdated) -> None:
    await service.plan_packing(conn, event.repo.id)


@handles_slowly(service.PACK)
async def pack(database: Database, body: dict[str, Any]) -> None:
    await service.pack_if_needed(database, body["repo_id"])
