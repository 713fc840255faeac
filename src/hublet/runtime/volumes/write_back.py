"""Write-back of buckets: an attempt's changes go into the bucket, in the creator's name."""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, Unavailable
from hublet.jobs.access import find_mounted, get_delegate
from hublet.jobs.records import JobRecord, Mount, VolumeType
from hublet.repos import service as repos
from hublet.repos.errors import PathTakenInBucket
from hublet.repos.files import service as files
from hublet.repos.files import store as file_store
from hublet.repos.files.records import File, FileChange, FileRemoval, HeldContent
from hublet.repos.files.uploads import add_contents, guess_media_type
from hublet.repos.names import check_path
from hublet.repos.records import Right
from hublet.repos.xet.ingestion import cut_now
from hublet.runtime.errors import BucketGone
from hublet.runtime.volumes import bucket_mounts
from hublet.runtime.volumes.bucket_mounts import prefix_of
from hublet.runtime.volumes.records import (
    FILES,
    RESULT,
    SNAPSHOT,
    BucketSnapshot,
    ChangedFile,
    bucket_folder,
)
from hublet.storage.errors import FileTooLarge
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob

# Files in one transaction.
_BATCH = 500
# Of a bucket, the sentences in the log.
_MAX_REFUSALS = 100
# What an operator can mend, or what passes by itself; all other errors stay.
_TRANSIENT_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
# How long to retry those, in microseconds.
_PATIENCE = 600_000_000
_NOT_HERE = "What the job has written is not on this machine."
_NO_SNAPSHOT = BucketSnapshot(repo_id="", files={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteBack:
    """One bucket that is being written back."""

    job: JobRecord
    place: int
    mount: Mount
    folder: Path
    snapshot: BucketSnapshot
    # Sentences on what could not be written.
    refusals: list[str] = field(default_factory=list)
    # Those on the bucket as a whole.
    lost: list[str] = field(default_factory=list)

    def refuse(self, what: str, why: str) -> None:
        self.refusals.append(f"volumes[{self.place}]: {what} was not written back: {why}")

    def lose(self, why: str) -> None:
        self.refuse(self.mount.source, why)
        self.lost.append(self.refusals[-1])

    def log_lines(self) -> list[str]:
        """Return the refusals for the log, but not more of them than anybody reads."""
        more = len(self.refusals) - _MAX_REFUSALS
        if more <= 0:
            return self.refusals
        rest = f"volumes[{self.place}]: {more} more were not written back."
        return [*self.refusals[:_MAX_REFUSALS], rest]


async def write_back(
    database: Database, job: JobRecord, *, folder: Path, log: Path, has_begun: bool
) -> list[str]:
    """Write what an attempt that ended has changed into its buckets; `folder` is the attempt's own.

    The log says what could not be written; returned are the sentences on whole buckets. What was
    written is not written again from this folder. Raises what is worth another try, but not for
    ever: Unavailable and OSError. No transaction may be open.
    """
    lost: list[str] = []
    for place, mount in enumerate(job.spec.mounts):
        if mount.read_only or mount.type is not VolumeType.bucket:
            continue
        path = bucket_folder(folder, place) / SNAPSHOT
        result = path.with_name(RESULT)
        said = await asyncio.to_thread(_find_result, result)
        if said is None:
            snapshot = await asyncio.to_thread(bucket_mounts.find_snapshot, path)
            bucket = _WriteBack(
                job=job,
                place=place,
                mount=mount,
                folder=path.with_name(FILES),
                snapshot=snapshot or _NO_SNAPSHOT,
            )
            if snapshot is not None:
                await _write_back_or_refuse(database, bucket, path)
            elif has_begun:
                bucket.lose(_NOT_HERE)
            said = " ".join(bucket.lost)
            # Where even that fails nothing more can be done for the attempt.
            with suppress(OSError):
                await asyncio.to_thread(_append_to_log, log, bucket.log_lines())
            with suppress(OSError):
                await asyncio.to_thread(_write_result, result, said)
        lost += [said] if said else []
    return lost


def _find_result(path: Path) -> str | None:
    """Return the sentence on a bucket whose write-back is over, empty if there is none."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return None


def _write_result(path: Path, sentence: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(sentence)


def _append_to_log(log: Path, lines: list[str]) -> None:
    if not lines:
        return
    # The log of a job that began without a shared store may not have been adopted yet.
    older = log.with_name("log")
    log = older if older.exists() and not log.exists() else log
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.writelines(f"{micros()} {' '.join(line.split())}\n" for line in lines)


async def _write_back_or_refuse(database: Database, bucket: _WriteBack, snapshot: Path) -> None:
    """Write back what can be written. Raises what is worth another try."""
    try:
        await _write_changes(database, bucket)
    except Unavailable:
        raise
    except HubError as error:
        bucket.lose(error.message)
    except OSError as error:
        if error.errno in _TRANSIENT_ERRORS and not await asyncio.to_thread(
            _is_out_of_time, snapshot
        ):
            raise
        bucket.lose(f"{error.strerror or error}.")
    except RecursionError:
        bucket.lose("Something in it is nested too deeply.")


def _is_out_of_time(snapshot: Path) -> bool:
    """Tell whether it has failed for so long that the job need not wait any longer."""
    try:
        return micros() - bucket_mounts.first_failure_at(snapshot) > _PATIENCE
    except OSError:
        return True


async def _write_changes(database: Database, bucket: _WriteBack) -> None:
    before = bucket.snapshot.files
    diff = await asyncio.to_thread(bucket_mounts.compare, bucket.folder, before)
    for skipped in diff.skipped:
        if skipped.path:
            bucket.refuse(ascii(skipped.path), skipped.reason)
        else:
            bucket.lose(skipped.reason)
    # Removals go first: a folder may have taken the place of a file.
    for start in range(0, len(diff.removed), _BATCH):
        await _remove_files(database, bucket, diff.removed[start : start + _BATCH])
    for start in range(0, len(diff.changed), _BATCH):
        await _put_files(database, bucket, diff.changed[start : start + _BATCH])


async def _remove_files(database: Database, bucket: _WriteBack, paths: Sequence[str]) -> None:
    prefix, before = prefix_of(bucket.mount), bucket.snapshot.files
    async with database.transaction() as conn:
        present = await file_store.find_all(
            conn, bucket.snapshot.repo_id, [prefix + path for path in paths]
        )
        # A file that somebody else has replaced since then stays.
        unchanged = [
            FileRemoval(path=prefix + path)
            for path in paths
            if (file := present.get(prefix + path)) and file.sha256 == before[path].sha256
        ]
        await _change(conn, bucket, unchanged)


async def _put_files(
    database: Database, bucket: _WriteBack, changed: Sequence[ChangedFile]
) -> None:
    settings = database.hub.settings
    prefix = prefix_of(bucket.mount)
    allowed = [
        each for each in changed if _is_allowed(bucket, prefix, each, settings.limits.file_bytes)
    ]
    stored = await asyncio.to_thread(_store_blobs, open_store(settings), bucket, allowed)
    await cut_now(database, bucket.snapshot.repo_id, [blob for _, blob in stored])
    while stored:
        try:
            async with database.transaction() as conn:
                contents = await add_contents(
                    conn, bucket.snapshot.repo_id, [blob for _, blob in stored]
                )
                changes = [
                    _file(prefix, each, content)
                    for (each, _), content in zip(stored, contents, strict=True)
                ]
                await _change(conn, bucket, changes)
        except PathTakenInBucket as error:
            bucket.refuse(", ".join(error.paths), error.message)
            taken = set(error.paths)
            stored = [each for each in stored if prefix + each[0].path not in taken]
        else:
            return


def _is_allowed(bucket: _WriteBack, prefix: str, changed: ChangedFile, limit: int) -> bool:
    try:
        check_path(prefix + changed.path)
        if changed.size > limit:
            raise FileTooLarge(limit)
    except HubError as error:
        bucket.refuse(ascii(changed.path), error.message)
        return False
    return True


def _store_blobs(
    store: ObjectStore, bucket: _WriteBack, changed: Sequence[ChangedFile]
) -> list[tuple[ChangedFile, Blob]]:
    """Store the contents as blobs; those that turn out to be unchanged are left out."""
    before = bucket.snapshot.files
    stored: list[tuple[ChangedFile, Blob]] = []
    for each in changed:
        try:
            blob = bucket_mounts.store_blob(store, bucket.folder, each.path)
        except OSError as error:
            if error.errno in _TRANSIENT_ERRORS:
                raise
            bucket.refuse(ascii(each.path), f"It cannot be read: {error.strerror or error}.")
            continue
        if each.path not in before or before[each.path].sha256 != blob.sha256:
            stored.append((each, blob))
    return stored


def _file(prefix: str, changed: ChangedFile, content: HeldContent) -> File:
    return File(
        path=prefix + changed.path,
        sha256=content.sha256,
        size=content.size,
        xet_hash=content.xet_hash,
        media_type=guess_media_type(changed.path),
        # A job may set the times of its files to anything, also to what no calendar has.
        modified_at=clock.from_micros(min(max(changed.modified // 1000, 0), micros())),
        uploaded_at=clock.now(),
    )


async def _change(conn: Connection, bucket: _WriteBack, changes: Sequence[FileChange]) -> None:
    """Change the bucket if it is still the one that was mounted, and its creator still may."""
    creator = await get_delegate(conn, bucket.job.delegation)
    repo = await find_mounted(conn, creator, bucket.mount)
    if repo is None or repo.id != bucket.snapshot.repo_id:
        raise BucketGone
    await repos.check(conn, creator, repo, Right.write)
    await files.change_files(conn, creator, repo, changes)
