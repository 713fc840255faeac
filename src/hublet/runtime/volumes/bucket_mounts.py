"""Bucket mounts: an attempt gets a copy of the files, which is later compared with a snapshot.

All but `mount_bucket` blocks on the disk: call it from a thread.
"""

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
from hublet.repos.blobs_store import find_contents
from hublet.repos.files import service as files
from hublet.repos.files.records import File
from hublet.repos.records import Repo
from hublet.runtime.errors import CannotRun, NestedTooDeeply
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.volumes.checkouts import copy_content
from hublet.runtime.volumes.records import (
    FILES,
    SNAPSHOT,
    BucketDiff,
    BucketSnapshot,
    ChangedFile,
    FileSnapshot,
    SkippedPath,
)
from hublet.storage.contents import put_blob
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob, Content

_CHUNK = 1 << 20
_PAGE = 1000
# A job may run as another user than the hub; nobody else can reach this folder.
_OPEN_FILE = 0o666
_OPEN_FOLDER = 0o777
_KINDS = {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}

BucketContents = Mapping[str, Content]


async def mount_bucket(
    database: Database, repo: Repo, mount: Mount, target: Path, *, mount_points: Sequence[str]
) -> Path:
    """Return the folder with the files of a bucket, below `target`, which is filled only once.

    `mount_points` are the folders in it on which other volumes are mounted.
    """
    if not await run_in_launch_thread(target.exists):
        prefix = prefix_of(mount)
        store = open_store(database.hub.settings)
        contents = await _find_contents(database, repo, prefix)
        for mount_point in mount_points:
            if not contents.keys().isdisjoint((*parent_folders(mount_point), mount_point)):
                where = f"{mount.mount_path}/{mount_point}"
                raise CannotRun(
                    f"Nothing can be mounted at {where}: {mount.source} has a file there"
                )
        await run_in_launch_thread(_fill_mount, store, target, repo.id, contents, mount_points)
    return target / FILES


def prefix_of(mount: Mount) -> str:
    """Return the prefix of the mounted files in their bucket."""
    return f"{mount.path}/" if mount.path else ""


def _fill_mount(
    store: ObjectStore,
    target: Path,
    repo_id: str,
    contents: BucketContents,
    mount_points: Sequence[str],
) -> None:
    with atomic_dir(target) as folder:
        snapshots = fill_folder(store, folder / FILES, contents, mount_points=mount_points)
        write_snapshot(folder / SNAPSHOT, BucketSnapshot(repo_id=repo_id, files=snapshots))


async def _find_contents(database: Database, repo: Repo, prefix: str) -> dict[str, Content]:
    """Return the contents of the files by path, which begins behind the prefix."""
    listed = await _list_files(database, repo, prefix)
    found: dict[str, Content] = {}
    async with database.read() as conn:
        for start in range(0, len(listed), _PAGE):
            digests = [file.sha256 for file in listed[start : start + _PAGE]]
            found |= await find_contents(conn, repo.id, digests)
    return {file.path.removeprefix(prefix): found[file.sha256] for file in listed}


async def _list_files(database: Database, repo: Repo, prefix: str) -> list[File]:
    listed: list[File] = []
    async with database.read() as conn:
        while True:
            after = listed[-1].path if listed else ""
            page = await files.list_tree(
                conn, repo, prefix=prefix, after=after, limit=_PAGE, recursive=True
            )
            listed += [entry for entry in page if isinstance(entry, File)]
            if len(page) < _PAGE:
                return listed


def fill_folder(
    store: ObjectStore,
    folder: Path,
    files: BucketContents,
    *,
    mount_points: Sequence[str] = (),
) -> dict[str, FileSnapshot]:
    """Write files, and the folders on which something is mounted, below a new folder.

    Returns the snapshot of each file. Raises NestedTooDeeply and OSError.
    """
    _make_folder(folder)
    snapshots: dict[str, FileSnapshot] = {}
    for path, content in files.items():
        if path.count("/") > MAX_DEPTH:
            raise NestedTooDeeply(MAX_DEPTH)
        for inside in parent_folders(path):
            _make_folder(folder / inside)
        copy_content(store, content, folder / path, mode=_OPEN_FILE)
        snapshots[path] = _snapshot(content.sha256, (folder / path).lstat())
    for mount_point in mount_points:
        for inside in (*parent_folders(mount_point), mount_point):
            _make_folder(folder / inside)
    return snapshots


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


def write_snapshot(path: Path, snapshot: BucketSnapshot) -> None:
    with path.open("xb") as file:
        file.write(msgspec.json.encode(snapshot))
        file.flush()
        # Half a snapshot after a power cut would fail its attempt for ever.
        os.fsync(file.fileno())
    os.utime(path, (0, 0))


def first_failure_at(path: Path) -> int:
    """Return when this was first called for a snapshot, in microseconds: now, or earlier.

    The modification time of the file keeps it, which needs no room on a full disk.
    """
    if not path.stat().st_mtime_ns:
        now = micros() * 1000
        os.utime(path, ns=(now, now))
    return path.stat().st_mtime_ns // 1000


def find_snapshot(path: Path) -> BucketSnapshot | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=BucketSnapshot)
    except (FileNotFoundError, msgspec.DecodeError):
        # One that comes back from an engine may be anything.
        return None


def compare(folder: Path, before: Mapping[str, FileSnapshot]) -> BucketDiff:
    """Compare a folder with the snapshot of it. Raises OSError."""
    changed: list[ChangedFile] = []
    skipped: list[SkippedPath] = []
    present: set[str] = set()
    unreadable: set[str] = set()
    for each in walk(folder):
        if isinstance(each, UnreadableFolder):
            unreadable.add(each.path)
            skipped.append(SkippedPath(path=each.path, reason=each.reason))
        elif stat.S_ISREG(each.status.st_mode):
            present.add(each.path)
            if _may_differ(before.get(each.path), each.status):
                changed.append(_changed_file(each))
        else:
            # A link may lead out of the folder, and a pipe never ends.
            skipped.append(SkippedPath(path=each.path, reason=_kind_of(each.status)))
    removed = [
        path
        for path in before
        if path not in present and unreadable.isdisjoint(parent_folders(path))
    ]
    return BucketDiff(changed=changed, removed=removed, skipped=skipped)


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
    """Return the folders above a path, from the mounted one on."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts))]


def store_blob(store: ObjectStore, folder: Path, path: str) -> Blob:
    """Store a file that an attempt wrote as a blob of the hub. Raises OSError."""
    with os.fdopen(_open_inside(folder, path), "rb") as file, store.new_spool() as spool:
        while data := file.read(_CHUNK):
            spool.write(data)
        return put_blob(store, spool)


def _open_inside(folder: Path, path: str) -> int:
    """Open a file folder by folder, so that no link on the path is followed."""
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
