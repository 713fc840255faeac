"""Bucket mounts: an attempt gets a copy, which is later compared with the snapshot of it."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.folders import atomic_dir
from hublet.core.safe_walk import MAX_DEPTH, UnreadableFolder, WalkedFile, walk
from hublet.jobs.records import Mount
from hublet.repos.blobs import Spool, blob_path
from hublet.repos.files import service as files
from hublet.repos.files.records import File
from hublet.repos.records import Blob, Repo
from hublet.runtime.errors import NestedTooDeeply
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.records import CannotRun
from hublet.runtime.volumes.records import (
    FILES,
    NOTE,
    BucketDiff,
    BucketSnapshot,
    ChangedFile,
    FileSnapshot,
    SkippedPath,
)
from hublet.runtime.volumes.reflink import copy_file

# Everything here blocks on the disk; call it from a thread.

_CHUNK = 1 << 20
# A job may not be the hub's own user; nobody else gets as far as this folder.
_OPEN_FILE = 0o666
_OPEN_FOLDER = 0o777
_KINDS = {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}

# By path: the digest of a file, and where its bytes lie.
BucketContents = Mapping[str, tuple[str, Path]]


def fill_folder(
    folder: Path, files: BucketContents, *, rooms: Sequence[str] = ()
) -> dict[str, FileSnapshot]:
    """Put files, and the folders on which something is mounted, below a new folder.

    Returns each file as it is now. Raises NestedTooDeeply and OSError.
    """
    _make_folder(folder)
    seen: dict[str, FileSnapshot] = {}
    for path, (sha256, content) in files.items():
        if path.count("/") > MAX_DEPTH:
            raise NestedTooDeeply(MAX_DEPTH)
        for inside in parent_folders(path):
            _make_folder(folder / inside)
        copy_file(content, folder / path, mode=_OPEN_FILE)
        seen[path] = _snapshot(sha256, (folder / path).lstat())
    for room in rooms:
        for inside in (*parent_folders(room), room):
            _make_folder(folder / inside)
    return seen


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(_OPEN_FOLDER)


def _snapshot(sha256: str, status: os.stat_result) -> FileSnapshot:
    return FileSnapshot(
        sha256=sha256,
        size=status.st_size,
        inode=status.st_ino,
        modified=status.st_mtime_ns,
        changed=status.st_ctime_ns,
    )


def write_note(path: Path, handed: BucketSnapshot) -> None:
    with path.open("xb") as file:
        file.write(msgspec.json.encode(handed))
        file.flush()
        # Half a note after a power cut would be in the way of its attempt for ever.
        os.fsync(file.fileno())
    os.utime(path, (0, 0))


def first_failure_at(path: Path) -> int:
    """Return when this was asked of a note first, in microseconds: now, or earlier.

    The time of the file says it, which takes no room on a disk that is full.
    """
    if not path.stat().st_mtime_ns:
        now = micros() * 1000
        os.utime(path, ns=(now, now))
    return path.stat().st_mtime_ns // 1000


def find_note(path: Path) -> BucketSnapshot | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=BucketSnapshot)
    except FileNotFoundError:
        return None


def survey(folder: Path, before: Mapping[str, FileSnapshot]) -> BucketDiff:
    """Compare a folder with what was put there. Raises OSError."""
    changed: list[ChangedFile] = []
    left: list[SkippedPath] = []
    here: set[str] = set()
    closed: set[str] = set()
    for each in walk(folder):
        if isinstance(each, UnreadableFolder):
            closed.add(each.path)
            left.append(SkippedPath(path=each.path, reason=each.reason))
        elif stat.S_ISREG(each.status.st_mode):
            here.add(each.path)
            if _may_differ(before.get(each.path), each.status):
                changed.append(_changed_file(each))
        else:
            # A link may lead out of the folder, and a pipe never ends.
            left.append(SkippedPath(path=each.path, reason=_kind_of(each.status)))
    gone = [path for path in before if path not in here and closed.isdisjoint(parent_folders(path))]
    return BucketDiff(changed=changed, gone=gone, left=left)


def _may_differ(was: FileSnapshot | None, status: os.stat_result) -> bool:
    return was is None or was != _snapshot(was.sha256, status)


def _changed_file(entry: WalkedFile) -> ChangedFile:
    return ChangedFile(
        path=entry.path, size=entry.status.st_size, modified=entry.status.st_mtime_ns
    )


def _kind_of(status: os.stat_result) -> str:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "device")
    return f"It is a {kind}."


def parent_folders(path: str) -> list[str]:
    """Return the folders in which a path lies, from the mounted one on."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts))]


def keep(data_dir: Path, folder: Path, path: str) -> Blob:
    """Put what an attempt wrote among the hub's blobs. Raises OSError."""
    with os.fdopen(_open_inside(folder, path), "rb") as file, Spool(data_dir) as spool:
        while data := file.read(_CHUNK):
            spool.write(data)
        return spool.store()


def _open_inside(folder: Path, path: str) -> int:
    """Open step by step, so that no link on the way is followed."""
    *above, name = path.split("/")
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


_PAGE = 1000


async def mount_bucket(
    database: Database, repo: Repo, mount: Mount, target: Path, *, rooms: Sequence[str]
) -> Path:
    """Return the folder with the files of a bucket, below one that is filled the first time.

    `rooms` are the folders in it on which other volumes are mounted.
    """
    if not await run_in_launch_thread(target.exists):
        prefix = prefix_of(mount)
        data_dir = database.hub.settings.database.data_dir
        contents = {
            file.path.removeprefix(prefix): (file.sha256, blob_path(data_dir, file.sha256))
            for file in await _list_files(database, repo, prefix)
        }
        for room in rooms:
            if not contents.keys().isdisjoint((*parent_folders(room), room)):
                where = f"{mount.mount_path}/{room}"
                raise CannotRun(
                    f"Nothing can be mounted at {where}: {mount.source} has a file there"
                )
        await run_in_launch_thread(_fill_mount, target, repo.id, contents, rooms)
    return target / FILES


def prefix_of(mount: Mount) -> str:
    """Return what the paths of the mounted files begin with in their bucket."""
    return f"{mount.path}/" if mount.path else ""


def _fill_mount(target: Path, repo_id: str, contents: BucketContents, rooms: Sequence[str]) -> None:
    with atomic_dir(target) as folder:
        seen = fill_folder(folder / FILES, contents, rooms=rooms)
        write_note(folder / NOTE, BucketSnapshot(repo_id=repo_id, files=seen))


async def _list_files(database: Database, repo: Repo, prefix: str) -> list[File]:
    found: list[File] = []
    async with database.read() as conn:
        while True:
            after = found[-1].path if found else ""
            page = await files.list_tree(
                conn, repo, prefix=prefix, after=after, limit=_PAGE, recursive=True
            )
            found += [entry for entry in page if isinstance(entry, File)]
            if len(page) < _PAGE:
                return found
