"""After an attempt: what it changed in its buckets is changed there, in the name of the creator."""

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
from hublet.jobs.asking import mounts
from hublet.jobs.creators import get_creator
from hublet.jobs.records import Job, Mount, VolumeType
from hublet.jobs.volumes import buckets
from hublet.jobs.volumes.errors import BucketGone
from hublet.jobs.volumes.handing import prefix_of
from hublet.jobs.volumes.places import FILES, NOTE, bucket_of
from hublet.jobs.volumes.records import Found, Handed
from hublet.repos import service as repos
from hublet.repos.blobs import store as blobs
from hublet.repos.blobs.records import Blob
from hublet.repos.files import service as files
from hublet.repos.files import store as file_store
from hublet.repos.files.errors import FileTooLarge, PathTaken
from hublet.repos.files.media import media_type_of
from hublet.repos.files.records import Change, File, Removal
from hublet.repos.paths import check_path
from hublet.repos.records import Right

# Files in one transaction.
_BATCH = 500
# Of a bucket, the sentences in the log.
_TOLD = 100
# What an operator can mend, or what passes by itself; everything else is as it is.
_PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
# In microseconds: how long that is waited for.
_PATIENCE = 600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """A bucket on its way back."""

    job: Job
    place: int
    mount: Mount
    folder: Path
    handed: Handed
    # Sentences on what could not be put back.
    refusals: list[str] = field(default_factory=list)

    def refuse(self, what: str, why: str) -> None:
        self.refusals.append(f"volumes[{self.place}]: {what} was not written back: {why}")

    def told(self) -> list[str]:
        """Return what the log says: a job may leave more behind than anybody reads."""
        more = len(self.refusals) - _TOLD
        if more <= 0:
            return self.refusals
        rest = f"volumes[{self.place}]: {more} more were not written back."
        return [*self.refusals[:_TOLD], rest]


async def write_back(database: Database, job: Job, *, folder: Path) -> list[str]:
    """Put what an attempt that ended has changed into its buckets; `folder` is the attempt's own.

    Returns sentences on what could not be written, for the log of the job. What was written back
    is not written again. Raises what is worth another try, but not for ever: DatabaseUnavailable,
    and OSError. No transaction may be open.
    """
    refusals: list[str] = []
    for place, mount in enumerate(job.spec.mounts):
        note = bucket_of(folder, place) / NOTE
        handed = await asyncio.to_thread(buckets.find_note, note)
        if handed is None or mount.read_only or mount.type is not VolumeType.bucket:
            continue
        content = note.with_name(FILES)
        returned = _Return(job=job, place=place, mount=mount, folder=content, handed=handed)
        await _return_or_refuse(database, returned, note)
        # Where even that fails nobody can do more for the attempt.
        with suppress(OSError):
            await asyncio.to_thread(note.unlink)
        refusals += returned.told()
    return refusals


async def _return_or_refuse(database: Database, returned: _Return, note: Path) -> None:
    """Put back what can be. Raises what is worth another try, so that it is made."""
    source = returned.mount.source
    try:
        await _return(database, returned)
    except DatabaseUnavailable:
        raise
    except HubError as error:
        returned.refuse(source, error.message)
    except OSError as error:
        if error.errno in _PASSING and not await asyncio.to_thread(_is_hopeless, note):
            raise
        returned.refuse(source, f"{error.strerror or error}.")
    except RecursionError:
        returned.refuse(source, "Something in it is nested too deeply.")


def _is_hopeless(note: Path) -> bool:
    """Tell whether it was tried for so long that the job need not wait any longer."""
    try:
        return micros() - buckets.stumbled_at(note) > _PATIENCE
    except OSError:
        return True


async def _return(database: Database, returned: _Return) -> None:
    before = returned.handed.files
    found = await asyncio.to_thread(buckets.survey, returned.folder, before)
    for left in found.left:
        what = ascii(left.path) if left.path else returned.mount.source
        returned.refuse(what, left.reason)
    # What is gone goes first: a folder may have taken the place of a file.
    for start in range(0, len(found.gone), _BATCH):
        await _remove(database, returned, found.gone[start : start + _BATCH])
    for start in range(0, len(found.changed), _BATCH):
        await _put(database, returned, found.changed[start : start + _BATCH])


async def _remove(database: Database, returned: _Return, paths: Sequence[str]) -> None:
    prefix, before = prefix_of(returned.mount), returned.handed.files
    async with database.transaction() as conn:
        here = await file_store.find_all(
            conn, returned.handed.repo_id, [prefix + path for path in paths]
        )
        # What somebody else has replaced since then is theirs, and stays.
        same = [
            Removal(path=prefix + path)
            for path in paths
            if (file := here.get(prefix + path)) and file.sha256 == before[path].sha256
        ]
        await _change(conn, returned, same)


async def _put(database: Database, returned: _Return, found: Sequence[Found]) -> None:
    settings = database.hub.settings
    prefix = prefix_of(returned.mount)
    allowed = [
        each for each in found if _is_allowed(returned, prefix, each, settings.limits.file_bytes)
    ]
    kept = await asyncio.to_thread(_keep, settings.database.data_dir, returned, allowed)
    changes = [_file(prefix, each, blob) for each, blob in kept]
    while changes:
        try:
            async with database.transaction() as conn:
                await blobs.add(conn, [blob for _, blob in kept])
                await _change(conn, returned, changes)
        except PathTaken as error:
            returned.refuse(", ".join(error.paths), error.message)
            changes = [change for change in changes if change.path not in error.paths]
        else:
            return


def _is_allowed(returned: _Return, prefix: str, found: Found, limit: int) -> bool:
    try:
        check_path(prefix + found.path)
        if found.size > limit:
            raise FileTooLarge(limit)
    except HubError as error:
        returned.refuse(ascii(found.path), error.message)
        return False
    return True


def _keep(data_dir: Path, returned: _Return, found: Sequence[Found]) -> list[tuple[Found, Blob]]:
    """Keep contents; those that turn out to be what they were are left out."""
    before = returned.handed.files
    kept: list[tuple[Found, Blob]] = []
    for each in found:
        try:
            blob = buckets.keep(data_dir, returned.folder, each.path)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            returned.refuse(ascii(each.path), f"It cannot be read: {error.strerror or error}.")
            continue
        if each.path not in before or before[each.path].sha256 != blob.sha256:
            kept.append((each, blob))
    return kept


def _file(prefix: str, found: Found, blob: Blob) -> File:
    return File(
        path=prefix + found.path,
        sha256=blob.sha256,
        size=blob.size,
        media_type=media_type_of(found.path),
        # A job sets the times of its files as it likes, also to what no calendar has.
        modified_at=clock.from_micros(min(max(found.modified // 1000, 0), micros())),
        uploaded_at=clock.now(),
    )


async def _change(conn: Connection, returned: _Return, changes: Sequence[Change]) -> None:
    """Change the bucket if it is still the one that was mounted, and its creator still may."""
    creator = await get_creator(conn, returned.job.creator_id)
    repo = await mounts.get_mounted(conn, creator, returned.mount)
    if repo is None or repo.id != returned.handed.repo_id:
        raise BucketGone
    await repos.check(conn, creator, repo, Right.write)
    await files.change(conn, creator, repo, changes)
