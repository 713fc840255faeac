"""Write-back of buckets: an attempt's changes go into the bucket, in the creator's name."""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.errors import HubError
from hublet.core.light_dataclasses import dataclass
from hublet.jobs import mounts
from hublet.jobs.access import get_creator
from hublet.jobs.records import JobRecord, Mount, VolumeType
from hublet.repos import blobs_store as blobs
from hublet.repos import service as repos
from hublet.repos.errors import FileTooLarge, PathTakenInBucket
from hublet.repos.files import service as files
from hublet.repos.files import store as file_store
from hublet.repos.files.records import File, FileChange, FileRemoval
from hublet.repos.files.uploads import guess_media_type
from hublet.repos.names import check_path
from hublet.repos.records import Blob, Right
from hublet.runtime.errors import BucketGone
from hublet.runtime.volumes import bucket_mounts
from hublet.runtime.volumes.bucket_mounts import prefix_of
from hublet.runtime.volumes.records import FILES, NOTE, BucketSnapshot, ChangedFile, bucket_folder

# Files in one transaction.
_BATCH = 500
# Of a bucket, the sentences in the log.
_MAX_REFUSALS = 100
# What an operator can mend, or what passes by itself; everything else is as it is.
_TRANSIENT_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
# In microseconds: how long that is waited for.
_PATIENCE = 600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteBack:
    """A bucket on its way back."""

    job: JobRecord
    place: int
    mount: Mount
    folder: Path
    handed: BucketSnapshot
    # Sentences on what could not be put back.
    refusals: list[str] = field(default_factory=list)

    def refuse(self, what: str, why: str) -> None:
        self.refusals.append(f"volumes[{self.place}]: {what} was not written back: {why}")

    def told(self) -> list[str]:
        """Return what the log says: a job may leave more behind than anybody reads."""
        more = len(self.refusals) - _MAX_REFUSALS
        if more <= 0:
            return self.refusals
        rest = f"volumes[{self.place}]: {more} more were not written back."
        return [*self.refusals[:_MAX_REFUSALS], rest]


async def write_back(database: Database, job: JobRecord, *, folder: Path) -> list[str]:
    """Put what an attempt that ended has changed into its buckets; `folder` is the attempt's own.

    Returns sentences on what could not be written, for the log of the job. What was written back
    is not written again. Raises what is worth another try, but not for ever: DatabaseUnavailable,
    and OSError. No transaction may be open.
    """
    refusals: list[str] = []
    for place, mount in enumerate(job.spec.mounts):
        note = bucket_folder(folder, place) / NOTE
        handed = await asyncio.to_thread(bucket_mounts.find_note, note)
        if handed is None or mount.read_only or mount.type is not VolumeType.bucket:
            continue
        content = note.with_name(FILES)
        returned = _WriteBack(job=job, place=place, mount=mount, folder=content, handed=handed)
        await _write_back_or_refuse(database, returned, note)
        # Where even that fails nobody can do more for the attempt.
        with suppress(OSError):
            await asyncio.to_thread(note.unlink)
        refusals += returned.told()
    return refusals


async def _write_back_or_refuse(database: Database, returned: _WriteBack, note: Path) -> None:
    """Put back what can be. Raises what is worth another try, so that it is made."""
    source = returned.mount.source
    try:
        await _write_changes(database, returned)
    except DatabaseUnavailable:
        raise
    except HubError as error:
        returned.refuse(source, error.message)
    except OSError as error:
        if error.errno in _TRANSIENT_ERRORS and not await asyncio.to_thread(_is_out_of_time, note):
            raise
        returned.refuse(source, f"{error.strerror or error}.")
    except RecursionError:
        returned.refuse(source, "Something in it is nested too deeply.")


def _is_out_of_time(note: Path) -> bool:
    """Tell whether it was tried for so long that the job need not wait any longer."""
    try:
        return micros() - bucket_mounts.first_failure_at(note) > _PATIENCE
    except OSError:
        return True


async def _write_changes(database: Database, returned: _WriteBack) -> None:
    before = returned.handed.files
    found = await asyncio.to_thread(bucket_mounts.survey, returned.folder, before)
    for left in found.left:
        what = ascii(left.path) if left.path else returned.mount.source
        returned.refuse(what, left.reason)
    # What is gone goes first: a folder may have taken the place of a file.
    for start in range(0, len(found.gone), _BATCH):
        await _remove_files(database, returned, found.gone[start : start + _BATCH])
    for start in range(0, len(found.changed), _BATCH):
        await _put_files(database, returned, found.changed[start : start + _BATCH])


async def _remove_files(database: Database, returned: _WriteBack, paths: Sequence[str]) -> None:
    prefix, before = prefix_of(returned.mount), returned.handed.files
    async with database.transaction() as conn:
        here = await file_store.find_all(
            conn, returned.handed.repo_id, [prefix + path for path in paths]
        )
        # What somebody else has replaced since then is theirs, and stays.
        same = [
            FileRemoval(path=prefix + path)
            for path in paths
            if (file := here.get(prefix + path)) and file.sha256 == before[path].sha256
        ]
        await _change(conn, returned, same)


async def _put_files(
    database: Database, returned: _WriteBack, found: Sequence[ChangedFile]
) -> None:
    settings = database.hub.settings
    prefix = prefix_of(returned.mount)
    allowed = [
        each for each in found if _is_allowed(returned, prefix, each, settings.limits.file_bytes)
    ]
    kept = await asyncio.to_thread(_store_blobs, settings.database.data_dir, returned, allowed)
    changes = [_file(prefix, each, blob) for each, blob in kept]
    while changes:
        try:
            async with database.transaction() as conn:
                await blobs.add(conn, [blob for _, blob in kept])
                await _change(conn, returned, changes)
        except PathTakenInBucket as error:
            returned.refuse(", ".join(error.paths), error.message)
            changes = [change for change in changes if change.path not in error.paths]
        else:
            return


def _is_allowed(returned: _WriteBack, prefix: str, found: ChangedFile, limit: int) -> bool:
    try:
        check_path(prefix + found.path)
        if found.size > limit:
            raise FileTooLarge(limit)
    except HubError as error:
        returned.refuse(ascii(found.path), error.message)
        return False
    return True


def _store_blobs(
    data_dir: Path, returned: _WriteBack, found: Sequence[ChangedFile]
) -> list[tuple[ChangedFile, Blob]]:
    """Keep contents; those that turn out to be what they were are left out."""
    before = returned.handed.files
    kept: list[tuple[ChangedFile, Blob]] = []
    for each in found:
        try:
            blob = bucket_mounts.keep(data_dir, returned.folder, each.path)
        except OSError as error:
            if error.errno in _TRANSIENT_ERRORS:
                raise
            returned.refuse(ascii(each.path), f"It cannot be read: {error.strerror or error}.")
            continue
        if each.path not in before or before[each.path].sha256 != blob.sha256:
            kept.append((each, blob))
    return kept


def _file(prefix: str, found: ChangedFile, blob: Blob) -> File:
    return File(
        path=prefix + found.path,
        sha256=blob.sha256,
        size=blob.size,
        media_type=guess_media_type(found.path),
        # A job sets the times of its files as it likes, also to what no calendar has.
        modified_at=clock.from_micros(min(max(found.modified // 1000, 0), micros())),
        uploaded_at=clock.now(),
    )


async def _change(conn: Connection, returned: _WriteBack, changes: Sequence[FileChange]) -> None:
    """Change the bucket if it is still the one that was mounted, and its creator still may."""
    creator = await get_creator(conn, returned.job.creator_id)
    repo = await mounts.find_mounted(conn, creator, returned.mount)
    if repo is None or repo.id != returned.handed.repo_id:
        raise BucketGone
    await repos.check(conn, creator, repo, Right.write)
    await files.change_files(conn, creator, repo, changes)
