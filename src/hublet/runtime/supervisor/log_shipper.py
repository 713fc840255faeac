"""Shipper of logs: what the attempts of this machine print goes to the shared store, in chunks.

A chunk is put before the row that counts it, and its name is where it begins and ends: a worker that
dies in between, or two that ship at once, put the same bytes again and count them once. A worker with
another data folder, which takes over the attempt of an engine, first makes its file from the chunks.
Without a shared store nothing is shipped, and the log of a job is a file.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hublet.core.batching import GroupCommit
from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database
from hublet.core.folders import remove_tree
from hublet.core.logs import get_logger
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.jobs.logs import store
from hublet.jobs.logs.reader import job_folder, log_path
from hublet.jobs.logs.source import (
    CHUNK_BYTES,
    StoredLog,
    goes_on,
    local_log,
    make_file,
    put_new,
)
from hublet.jobs.metrics import history_path
from hublet.jobs.records import LogPart, Stage
from hublet.jobs.service import TIDY_LOG
from hublet.runtime.attempt_folder import note_log_start
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import (
    NEVER,
    ObjectKey,
    ObjectStore,
    has_shared_store,
    open_store,
)

log = get_logger("jobs")

# Between two chunks of a log that grows slowly, and between two looks at the files.
_SHIP_SECONDS = 2.0
_LOOK_SECONDS = 0.25
_USAGE_SECONDS = 30.0
_SWEEP_SECONDS = 600.0
_MOST_AT_ONCE = 8
# Readers have heard by then that there is something else to read.
_READERS_GRACE = timedelta(minutes=10)
# Its machine sweeps three times until then.
_LOST_MICROS = 1_800_000_000
_NO_JOB = (Stage.deleted, 0)
_LOST = "===== What it printed after this is lost with its machine ====="


class LogShipper:
    """Ships the logs of the attempts that one Supervisor observes."""

    def __init__(self, database: Database) -> None:
        settings = database.hub.settings
        self.is_active = has_shared_store(settings)
        self._database = database
        self._data_dir = settings.database.data_dir
        self._store = open_store(settings)
        self._writes = GroupCommit(database)
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        # By the id of a job, the attempt that is observed here, and how far it was shipped when.
        self._attempts: dict[str, int] = {}
        self._parts: dict[str, LogPart] = {}
        self._shipped_at: dict[str, float] = {}
        self._usage_at: dict[str, float] = {}
        # By the id of a job, the size of a file that was made from the store.
        self._restored: dict[str, int] = {}

    def path_of(self, job_id: str, attempt: int) -> Path:
        """Return the file that an attempt which is launched now prints to."""
        if self.is_active:
            return local_log(self._folder(job_id), attempt).absolute()
        return log_path(self._data_dir, job_id).absolute()

    def _folder(self, job_id: str) -> Path:
        return job_folder(self._data_dir, job_id)

    async def begin(self, job_id: str, attempt: int) -> None:
        """Begin the log of an attempt that is launched now; the ones before it have ended."""
        if not self.is_active:
            return
        async with self._database.read() as conn:
            parts = await store.list_parts(conn, job_id)
        if not parts and attempt > 1 and await self._adopt(job_id, attempt - 1):
            await self.finish(job_id, attempt - 1)
        async with self._database.transaction() as conn:
            await store.add_part(conn, job_id, attempt, notice=_LOST, at=micros())
        await self._restore_usage(job_id, parts)

    async def _restore_usage(self, job_id: str, parts: Sequence[LogPart]) -> None:
        """Let the plots of a job go on, also when it ran on another machine before."""
        stored = StoredLog(store=self._store, folder=self._folder(job_id), parts=tuple(parts))
        if stored.usage_key is not None:
            history = history_path(self._data_dir, job_id)
            with suppress(FileNotFoundError, StoreUnavailable):
                await asyncio.to_thread(_restore_usage, self._store, stored.usage_key, history)

    async def restore(self, job_id: str, attempt: int, *, folder: Path) -> None:
        """Make the file of an attempt that was followed elsewhere so far; `folder` is the attempt's own.

        A file that goes on where the store ends is left as it is. Raises StoreUnavailable.
        """
        if not self.is_active or self._attempts.get(job_id) == attempt:
            return
        async with self._database.read() as conn:
            parts = await store.list_parts(conn, job_id)
        part = next((each for each in parts if each.attempt == attempt), None)
        if part is None or part.ended_at is not None or not part.size:
            return
        path = local_log(self._folder(job_id), attempt)
        if await asyncio.to_thread(_restore_log, self._store, part, path, folder):
            log.info("the log of an attempt was taken over", job=job_id, attempt=attempt)
            self._restored[job_id] = part.size
            await self._restore_usage(job_id, parts)

    async def has_followed(self, job_id: str, attempt: int) -> bool:
        """Tell whether the file of an attempt has more than what was shipped elsewhere."""
        if not self.is_active:
            return True
        path = local_log(self._folder(job_id), attempt)
        if (restored := self._restored.get(job_id)) is None:
            return await asyncio.to_thread(path.exists)
        return await asyncio.to_thread(_size, path) > restored

    def follow(self, job_id: str, attempt: int) -> None:
        """Ship the log of an attempt from now on, until it is finished."""
        if self.is_active and self._attempts.get(job_id) != attempt:
            self._forget(job_id)
            self._attempts[job_id] = attempt

    def leave(self, job_id: str) -> None:
        """Ship the log of a job no longer: another worker may."""
        self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        for table in (self._attempts, self._parts, self._shipped_at, self._usage_at):
            table.pop(job_id, None)

    async def run(self) -> None:
        """Ship whatever grows, until it is cancelled."""
        sweep_at = 0.0
        while True:
            await self.ship_all()
            if monotonic() >= sweep_at:
                await self.sweep()
                sweep_at = monotonic() + _SWEEP_SECONDS
            await asyncio.sleep(_LOOK_SECONDS)

    async def ship_all(self, *, at_once: bool = False) -> None:
        """Ship of each log what it has grown by, if that is much or waits for long."""
        attempts = dict(self._attempts)
        await asyncio.gather(*(self._ship_due(*each, at_once=at_once) for each in attempts.items()))

    async def _ship_due(self, job_id: str, attempt: int, *, at_once: bool) -> None:
        async with self._room:
            try:
                await self._ship(job_id, attempt, at_once=at_once)
            except (StoreUnavailable, OSError) as error:
                log.warning("the log of a job was not shipped", job=job_id, error=str(error))

    async def _ship(self, job_id: str, attempt: int, *, at_once: bool) -> None:
        part = self._parts.get(job_id) or await self._find(job_id, attempt)
        if part is None or part.ended_at is not None:
            self._forget(job_id)
            return
        self._parts[job_id] = part
        path = local_log(self._folder(job_id), attempt)
        pending = await asyncio.to_thread(_size, path) - part.size
        now = monotonic()
        is_due = now >= self._shipped_at.get(job_id, 0.0) + _SHIP_SECONDS
        if pending >= CHUNK_BYTES or (pending > 0 and (is_due or at_once)):
            shipped = await asyncio.to_thread(put_new, self._store, part, path)
            if shipped.size > part.size:
                self._shipped_at[job_id] = now
                await self._advance(part, shipped)
        if at_once or now >= self._usage_at.setdefault(job_id, now) + _USAGE_SECONDS:
            self._usage_at[job_id] = now
            await self._ship_usage(part)

    async def _find(self, job_id: str, attempt: int) -> LogPart | None:
        async with self._database.read() as conn:
            part = await store.find_part(conn, job_id, attempt)
        if part is None and await self._adopt(job_id, attempt):
            return LogPart(job_id=job_id, attempt=attempt)
        return part

    async def _adopt(self, job_id: str, attempt: int) -> bool:
        """Ship the log of a job that began without a shared store as that of an attempt."""
        folder = self._folder(job_id)
        if not await asyncio.to_thread(_link, folder / "log", local_log(folder, attempt)):
            return False
        async with self._database.transaction() as conn:
            stage, _ = (await store.list_stages(conn, [job_id])).get(job_id, _NO_JOB)
            if stage is Stage.deleted:
                return False
            await store.add_part(conn, job_id, attempt, notice=_LOST, at=micros())
        return True

    async def _advance(self, part: LogPart, shipped: LogPart) -> bool:
        async def advance(conn: Connection) -> bool:
            is_ahead = await store.advance(conn, shipped, seen_size=part.size)
            if is_ahead and shipped.ended_at is not None:
                body = {"job_id": part.job_id, "attempt": part.attempt}
                task = NewTask(kind=TIDY_LOG, body=json.dumps(body), delay=_READERS_GRACE)
                await add_task(conn, task)
            return is_ahead

        is_ahead = await self._writes.run(advance)
        if is_ahead and part.job_id in self._attempts:
            self._parts[part.job_id] = shipped
        else:
            # Another worker ships it too: before it is followed again, the file is compared.
            self._forget(part.job_id)
        return is_ahead

    async def finish(self, job_id: str, attempt: int, *, is_cut: bool = False) -> None:
        """Ship the rest of the log of an attempt that ended; with `is_cut` more of it is lost.

        Raises StoreUnavailable: the end of the job waits until its last line is in the store.
        """
        if not self.is_active:
            return
        path = local_log(self._folder(job_id), attempt)
        is_ended = False
        while not is_ended:
            part = await self._find(job_id, attempt)
            if part is None or part.ended_at is not None:
                break
            await self._ship_usage(part)
            shipped = await asyncio.to_thread(put_new, self._store, part, path, is_over=True)
            ended = replace(shipped, ended_at=micros(), notice=_LOST if is_cut else None)
            is_ended = await self._advance(part, ended)
        self._forget(job_id)
        self._restored.pop(job_id, None)
        history = history_path(self._data_dir, job_id)
        await asyncio.to_thread(history.unlink, missing_ok=True)

    async def _ship_usage(self, part: LogPart) -> None:
        history = history_path(self._data_dir, part.job_id)
        try:
            data = await asyncio.to_thread(history.read_bytes)
        except FileNotFoundError:
            return
        async with self._database.read() as conn:
            parts = await store.list_parts(conn, part.job_id)
        name = f"{part.job_id}/usage/{part.attempt}-{micros()}"
        await asyncio.to_thread(self._store.put_bytes, ObjectKey("logs", name), data)
        await self._writes.run(lambda conn: store.set_usage(conn, part.job_id, part.attempt, name))
        replaced = [ObjectKey("logs", each.usage) for each in parts if each.usage is not None]
        await asyncio.to_thread(self._store.delete, replaced, before=NEVER)

    async def sweep(self) -> None:
        """Ship what jobs left here that are over, and remove the files of what was shipped."""
        if not self.is_active:
            return
        folders = await asyncio.to_thread(_job_folders, self._data_dir)
        async with self._database.read() as conn:
            stages = await store.list_stages(conn, folders)
        for job_id, folder in folders.items():
            stage, attempt = stages.get(job_id, _NO_JOB)
            if stage is Stage.deleted:
                await asyncio.to_thread(remove_tree, folder)
            elif stage.is_terminal or job_id not in self._attempts:
                await self._sweep_folder(job_id, folder, attempt, is_over=stage.is_terminal)

        await self._end_left()

    async def _end_left(self) -> None:
        """End the logs whose machine would have ended them by now, if it were still there."""
        before = micros() - _LOST_MICROS
        async with self._database.read() as reader:
            if not await store.has_left(reader, finished_before=before):
                return
        async with self._database.transaction() as conn:
            await store.end_left(conn, finished_before=before, notice=_LOST, at=micros())

    async def _sweep_folder(
        self, job_id: str, folder: Path, attempt: int, *, is_over: bool
    ) -> None:
        async with self._database.read() as conn:
            parts = {part.attempt: part for part in await store.list_parts(conn, job_id)}
        if is_over and not parts and await self._adopt(job_id, attempt):
            parts = {attempt: LogPart(job_id=job_id, attempt=attempt)}
        before = micros() - _READERS_GRACE // timedelta(microseconds=1)
        for number, part in parts.items():
            if part.ended_at is None and is_over:
                await self.finish(job_id, number)
            elif part.ended_at is not None and part.ended_at < before:
                await asyncio.to_thread(_remove_file, folder, number)


def _job_folders(data_dir: Path) -> dict[str, Path]:
    found = (data_dir / "jobs").glob("[0-9a-f][0-9a-f]/*")
    return {folder.name: folder for folder in found}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _link(old: Path, new: Path) -> bool:
    """Give a log of the old kind its new name too; False without it."""
    try:
        new.hardlink_to(old)
    except FileExistsError:
        return True
    except FileNotFoundError:
        return False
    return True


def _restore_log(objects: ObjectStore, part: LogPart, path: Path, folder: Path) -> bool:
    """Make the file of a log of its chunks, unless there is one that goes on where they end."""
    if goes_on(objects, part, path):
        return False
    # Whoever follows it begins at the last line of all of it.
    if not path.exists():
        note_log_start(folder, path)
    make_file(objects, part, path)
    return True


def _restore_usage(objects: ObjectStore, key: ObjectKey, history: Path) -> None:
    if not history.exists():
        history.parent.mkdir(parents=True, exist_ok=True)
        new = history.with_name("usage.new")
        new.write_bytes(objects.read(key))
        new.rename(history)


def _remove_file(folder: Path, attempt: int) -> None:
    path = local_log(folder, attempt)
    with suppress(FileNotFoundError):
        if path.samefile(folder / "log"):
            (folder / "log").unlink()
    path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
