"""Removal of objects, safe beside uploads of the same content, from any store; and the hold on it: while a
backup is made, nothing that the database named at its start is removed.

A backup writes the database first and the content after it. Content never changes, so all that can
go wrong is that some of it is removed in between: by pruning, or because its repository or job was
deleted. Whatever removes content asks here. A hold is a lease: that of a backup that died ends soon.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from hublet.core import metadata
from hublet.core.clock import micros
from hublet.core.database import Connection, Database, Reader
from hublet.core.errors import Conflict
from hublet.core.ids import new_object_id
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.storage import store
from hublet.storage.object_store import ObjectKey, ObjectStore

# So many take a moment: uploads of the same content are refused that long.
_BATCH = 100


async def remove_objects(
    database: Database, objects: ObjectStore, keys: Iterable[ObjectKey], *, before: datetime
) -> None:
    """Remove objects that have no row, except those that were put since then.

    No transaction may be open. After a failure the note stays, and counts for an hour.
    """
    wanted = list(keys)
    if objects.can_put_aside:
        await asyncio.to_thread(objects.delete, wanted, before=before)
        return
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        removal = new_object_id()
        async with database.transaction() as conn:
            await store.add_removal(conn, removal, batch)
        await asyncio.to_thread(objects.delete, batch, before=before)
        async with database.transaction() as conn:
            await store.end_removal(conn, removal)


HOLD = timedelta(minutes=5)
_NAME = "storage.hold"
_POSTPONED = timedelta(minutes=1)


class StorageHeld(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "A backup is being made, and nothing is removed until it is done: try again after it."
        )


class BackupRunning(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Another backup of this hub is being made: wait for its end. One that was killed is "
            "forgotten after five minutes."
        )


async def hold(conn: Connection, holder: str) -> None:
    """Begin a hold, or extend one's own; who removes rows just now is waited for."""
    await _lock(conn)
    name, until = await _read(conn)
    if until > micros() and name != holder:
        raise BackupRunning
    await metadata.set_value(
        conn, _NAME, f"{holder} {micros() + HOLD // timedelta(microseconds=1)}"
    )


async def release_hold(conn: Connection, holder: str) -> None:
    await _lock(conn)
    if (await _read(conn))[0] == holder:
        await metadata.set_value(conn, _NAME, "- 0")


async def forget_hold(conn: Connection) -> None:
    """Forget the hold of whoever made the backup that was just restored."""
    await metadata.set_value(conn, _NAME, "- 0")


async def is_held(conn: Reader) -> bool:
    return (await _read(conn))[1] > micros()


async def check_not_held(conn: Connection) -> None:
    """Raise StorageHeld while a backup is made; none begins before this transaction has ended."""
    await _lock(conn)
    if await is_held(conn):
        raise StorageHeld


def after_backups(
    kind: str,
) -> Callable[
    [Callable[[Database, Any], Awaitable[None]]], Callable[[Database, Any], Awaitable[None]]
]:
    """Decorate the handler of a task that removes content: while a backup is made, it waits."""

    def decorate(
        run: Callable[[Database, Any], Awaitable[None]],
    ) -> Callable[[Database, Any], Awaitable[None]]:
        @wraps(run)
        async def run_or_postpone(database: Database, body: Any) -> None:
            async with database.read() as conn:
                is_busy = await is_held(conn)
            if not is_busy:
                return await run(database, body)
            async with database.transaction() as conn:
                task = NewTask(kind=kind, body=json.dumps(body), delay=_POSTPONED)
                await add_task(conn, task)
            return None

        return run_or_postpone

    return decorate


async def _lock(conn: Connection) -> None:
    await conn.lock("hold on the storage")


async def _read(conn: Reader) -> tuple[str, int]:
    name, _, until = (await metadata.find(conn, _NAME) or "- 0").partition(" ")
    return name, int(until)
