"""Tasks of jobs in the worker: remove what a deleted job left, start a scheduled job, tidy logs up."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.folders import remove_tree
from hublet.core.queue import add_daily, handles_slowly
from hublet.jobs.logs import store
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.logs.source import chunk_keys
from hublet.jobs.records import LogPart
from hublet.jobs.schedules.service import START_TASK, start_due
from hublet.jobs.service import REMOVE_FOLDER, TIDY_LOG
from hublet.storage.object_store import (
    NEVER,
    ObjectKey,
    ObjectStore,
    StoredObject,
    has_shared_store,
    open_store,
)
from hublet.storage.removals import after_backups

SWEEP_LOGS = "jobs.sweep-logs"
_INTERVAL = timedelta(days=1)
# What was put and is not counted yet.
_UNCOUNTED = timedelta(days=2)


@handles_slowly(REMOVE_FOLDER)
@after_backups(REMOVE_FOLDER)
async def remove_folder_of_job(database: Database, body: dict[str, Any]) -> None:
    """Remove the log and the files; other machines remove what they have when they sweep."""
    job_id, settings = body["job_id"], database.hub.settings
    await asyncio.to_thread(remove_tree, job_folder(settings.database.data_dir, job_id))
    async with database.read() as reader:
        parts = await store.list_parts(reader, job_id)
    if parts or has_shared_store(settings):
        # The rows go first: a reader that has none asks for no object.
        async with database.transaction() as conn:
            await store.remove_parts(conn, job_id)
        await asyncio.to_thread(_remove_unnamed, open_store(settings), f"{job_id}/", ())


@handles_slowly(TIDY_LOG)
@after_backups(TIDY_LOG)
async def tidy_log(database: Database, body: dict[str, Any]) -> None:
    """Remove chunks of a log that has ended which others took the place of."""
    job_id, attempt = body["job_id"], body["attempt"]
    async with database.read() as conn:
        part = await store.find_part(conn, job_id, attempt)
    if part is not None and part.ended_at is not None:
        objects = open_store(database.hub.settings)
        prefix = f"{job_id}/{attempt}/"
        await asyncio.to_thread(_remove_unnamed, objects, prefix, chunk_keys(part))


def _remove_unnamed(objects: ObjectStore, prefix: str, named: Iterable[ObjectKey]) -> None:
    kept = set(named)
    found = [each.key for each in objects.list("logs", prefix)]
    objects.delete([key for key in found if key not in kept], before=NEVER)


async def schedule_sweep(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Add the task that removes what no log has; without a shared store there is nothing to sweep."""
    if has_shared_store(conn.hub.settings):
        await add_daily(conn, SWEEP_LOGS, delay=delay)


@handles_slowly(SWEEP_LOGS)
@after_backups(SWEEP_LOGS)
async def sweep_logs(database: Database, _body: dict[str, Any]) -> None:
    """Remove objects of logs that no row names, and do so again tomorrow."""
    async with database.transaction() as conn:
        await schedule_sweep(conn, delay=_INTERVAL)
    # Files have the real time, which test mode does not move.
    before = clock.now() - clock.offset() - _UNCOUNTED
    objects = open_store(database.hub.settings)
    listed = await asyncio.to_thread(_list_older, objects, before)
    for job_id, found in groupby(sorted(listed), key=_job_of):
        async with database.read() as reader:
            parts = await store.list_parts(reader, job_id)
        unnamed = set(found) - _named(parts)
        await asyncio.to_thread(objects.delete, sorted(unnamed), before=before)


def _list_older(objects: ObjectStore, before: datetime) -> list[ObjectKey]:
    found: Iterable[StoredObject] = objects.list("logs")
    return [each.key for each in found if each.modified_at < before]


def _job_of(key: ObjectKey) -> str:
    return key.name.partition("/")[0]


def _named(parts: Iterable[LogPart]) -> set[ObjectKey]:
    chunks = {key for part in parts for key in chunk_keys(part)}
    return chunks | {ObjectKey("logs", part.usage) for part in parts if part.usage is not None}


@handles_slowly(START_TASK)
async def start_scheduled_job(database: Database, body: dict[str, Any]) -> None:
    await start_due(database, body["scheduled_job_id"], due_at=body["due_at"])
