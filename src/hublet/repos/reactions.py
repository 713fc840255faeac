"""Reactions and tasks of repositories: repacking, pruning, scrubbing, removal from the disk."""

import asyncio
from typing import Any

from hublet.core.database import Connection, Database
from hublet.core.file_cache import cache_in
from hublet.core.outbox import reacts_in_transaction_to, reacts_to
from hublet.core.queue import handles_slowly
from hublet.events import RepoContentUpdated
from hublet.repos import maintenance, name_backfill, pruning, scrubber
from hublet.repos import service as repos
from hublet.repos.browse import list_index
from hublet.repos.browse.list_index import ParameterCount
from hublet.repos.browse.overview import is_of_weights
from hublet.repos.files.changes import forget_changes
from hublet.repos.git import bare_repos
from hublet.repos.lfs import direct_uploads
from hublet.repos.packs.cache import path_of
from hublet.repos.records import MAIN, RepoType
from hublet.repos.xet import ingestion
from hublet.storage import chunker
from hublet.storage.removals import after_backups


@handles_slowly(repos.REMOVE_FOLDER)
@after_backups(repos.REMOVE_FOLDER)
async def remove_folder(database: Database, body: dict[str, Any]) -> None:
    folder = path_of(database, body["repo_id"])
    await asyncio.to_thread(bare_repos.remove, folder)
    cache = cache_in(database.hub.settings.database.data_dir)
    await asyncio.to_thread(cache.remove, body["repo_id"])


@handles_slowly(pruning.REMOVE_ORPHANS)
@after_backups(pruning.REMOVE_ORPHANS)
async def remove_orphans(database: Database, _body: dict[str, Any]) -> None:
    await pruning.remove_orphans(database)


@handles_slowly(pruning.PRUNE_BLOBS)
@after_backups(pruning.PRUNE_BLOBS)
async def sweep_blobs(database: Database, _body: dict[str, Any]) -> None:
    await pruning.prune_blobs(database)
    await direct_uploads.remove_given_up(database)
    async with database.transaction() as conn:
        await forget_changes(conn)


@handles_slowly(direct_uploads.CHECK)
async def check_direct_upload(database: Database, body: dict[str, Any]) -> None:
    await direct_uploads.check_upload(database, body)


@handles_slowly(scrubber.SCRUB)
async def scrub_storage(database: Database, _body: dict[str, Any]) -> None:
    await scrubber.scrub_daily(database)


@handles_slowly(chunker.CUT)
async def cut_contents(database: Database, _body: dict[str, Any]) -> None:
    await ingestion.cut_waiting(database)


@handles_slowly(ingestion.REMOVE_WHOLE)
@after_backups(ingestion.REMOVE_WHOLE)
async def remove_whole_copies(database: Database, _body: dict[str, Any]) -> None:
    await ingestion.remove_whole_copies(database)


@reacts_to(RepoContentUpdated)
async def plan_packing(conn: Connection, event: RepoContentUpdated) -> None:
    await maintenance.schedule_repack(conn, event.repo.id)


@handles_slowly(maintenance.REPACK)
@after_backups(maintenance.REPACK)
async def pack(database: Database, body: dict[str, Any]) -> None:
    await maintenance.repack_if_needed(database, body["repo_id"])


@reacts_in_transaction_to(RepoContentUpdated)
async def plan_parameter_count(conn: Connection, event: RepoContentUpdated) -> None:
    moves_main = any(update.ref == MAIN for update in event.updated_refs)
    if event.repo.type == RepoType.model and moves_main and _may_change_weights(event):
        await list_index.schedule_count(conn, event.repo.id)


def _may_change_weights(event: RepoContentUpdated) -> bool:
    names = event.changed_names
    return names is None or any(is_of_weights(name.encode()) for name in names)


@handles_slowly(list_index.COUNT_PARAMETERS, reads=ParameterCount)
async def count_parameters(database: Database, count: ParameterCount) -> None:
    await list_index.refresh_parameters(database, count.repo_id)


@handles_slowly(list_index.SCORE)
async def update_scores(database: Database, _body: dict[str, Any]) -> None:
    async with database.transaction() as conn:
        await list_index.schedule_scores(conn, delay=list_index.SCORE_EVERY)
    await list_index.update_scores(database)


@handles_slowly(name_backfill.FILL)
async def fill_name_parts(database: Database, _body: dict[str, Any]) -> None:
    await name_backfill.fill(database)


@handles_slowly(list_index.FILL)
async def fill_list_index(database: Database, _body: dict[str, Any]) -> None:
    await list_index.fill(database)
