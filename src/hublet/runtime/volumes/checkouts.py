"""Checkouts of repositories: the files of one commit, written once for all jobs that mount it; and reflink
copies, which share their bytes with the source on the disk.

Writing, reading, copying and removing them blocks on the disk: it runs in threads.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Event

import msgspec
import pygit2
from pygit2.enums import FileMode

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.folders import atomic_dir, remove_tree
from hublet.core.queue import add_daily
from hublet.core.safe_walk import MAX_DEPTH
from hublet.jobs import store
from hublet.jobs.records import Spec
from hublet.repos import blobs_store
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import POINTER_SIZES, LfsPointer, get_commit, parse_pointer
from hublet.repos.records import Repo
from hublet.repos.service import open_folder
from hublet.runtime.errors import CheckoutAbandoned, CommitTooLarge, NestedTooDeeply
from hublet.runtime.launch_threads import run_abandonable, run_in_launch_thread
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Content

# linux/fs.h: two files share their bytes until one of them is written to.
_FICLONE = 0x40049409

FILE_MODE = 0o644
EXECUTABLE_MODE = 0o755


def copy_content(
    store: ObjectStore, content: Content, target: Path, *, mode: int = FILE_MODE
) -> None:
    """Write a content to a new file, sharing its bytes where it lies in one piece here."""
    source = ContentSource(store, content)
    if source.path is not None:
        copy_file(source.path, target, mode=mode)
        return
    with target.open("xb") as file:
        file.writelines(source.pieces(0, content.size))
    target.chmod(mode)


def copy_file(source: Path, target: Path, *, mode: int = FILE_MODE) -> None:
    """Copy a file, sharing its bytes where the file system can.

    Never a hard link: a runner without namespaces lets a job write to all that its user owns,
    and a link would let it write into the hub's own blobs.
    """
    with source.open("rb") as read, target.open("xb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError:
            _copy_bytes(read.fileno(), written.fileno())
    target.chmod(mode)


def _copy_bytes(read: int, written: int) -> None:
    left = os.fstat(read).st_size
    with contextlib.suppress(OSError):
        while left > 0 and (count := os.copy_file_range(read, written, left)) > 0:
            left -= count
    if left:
        with (
            os.fdopen(os.dup(read), "rb") as source,
            os.fdopen(os.dup(written), "wb") as target,
        ):
            shutil.copyfileobj(source, target)


PRUNE_TASK = "jobs.sweep-volumes"
MAX_AGE = timedelta(days=7)
INTERVAL = timedelta(days=1)

# The limits of one commit on the disk; of large files only the second copies count.
MAX_ENTRIES = 1_000_000
MAX_SIZE = 64 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The files of a commit, and the folder that they are written to."""

    git: Path
    commit: str
    folder: Path


def checkouts_folder(data_dir: Path) -> Path:
    # Absolute, because runners start in other folders.
    return data_dir.absolute() / "jobs" / "volumes"


def checkout_of(data_dir: Path, *, repo_id: str, commit: str) -> Checkout:
    return Checkout(
        git=bare_repos.folder_of(data_dir, repo_id),
        commit=commit,
        folder=checkouts_folder(data_dir) / repo_id / commit,
    )


async def ensure_checkout(database: Database, repo: Repo, commit: str) -> Path:
    """Return the folder with the files of a commit; nobody may write to it."""
    data_dir = database.hub.settings.database.data_dir
    checkout = checkout_of(data_dir, repo_id=repo.id, commit=commit)
    if not await run_in_launch_thread(is_present, checkout):
        await open_folder(database, repo.id)
        contents = await _large_files(database, repo, checkout)
        store = open_store(database.hub.settings)
        await run_abandonable(write_checkout, store, checkout, contents)
    return checkout.folder


async def _large_files(database: Database, repo: Repo, checkout: Checkout) -> dict[str, Content]:
    large = await run_abandonable(list_large, checkout)
    # A pointer can be written by anybody who knows a digest; that is no right to the content.
    async with database.read() as conn:
        held = await blobs_store.find_contents_in_repo(
            conn, repo.id, {lfs.sha256 for lfs in large.values()}
        )
    return {
        path: held[lfs.sha256]
        for path, lfs in large.items()
        if lfs.sha256 in held and held[lfs.sha256].size == lfs.size
    }


def is_present(checkout: Checkout) -> bool:
    """Tell whether a checkout was written already; if so, mark it as used now."""
    try:
        touch(checkout.folder)
    except FileNotFoundError:
        return False
    return True


def touch(folder: Path) -> None:
    # Files have the real time, which test mode does not move.
    moment = (clock.now() - clock.offset()).timestamp()
    os.utime(folder, (moment, moment))


def list_large(checkout: Checkout, abandoned: Event | None = None) -> dict[str, LfsPointer]:
    """Return, by path, the files whose content lies outside git.

    Raises CommitTooLarge: trees that share what is in them can be far larger than they are.
    """
    repository = _open(checkout)
    large: dict[str, LfsPointer] = {}
    written = set[str]()
    left = MAX_SIZE
    for path, item in _walk(checkout, get_commit(repository, checkout.commit).tree, abandoned):
        if not isinstance(item, pygit2.Blob):
            continue
        _, size = repository.odb.read_header(item.id)
        if (lfs := _lfs(item, size)) is not None:
            large[path] = lfs
            # A first copy is as large as what was uploaded; many more of it may be a bomb.
            size = lfs.size if lfs.sha256 in written else 0
            written.add(lfs.sha256)
        left -= size
        if left < 0:
            raise CommitTooLarge(checkout.commit, f"it has more than {MAX_SIZE >> 30} GiB")
    return large


def write_checkout(
    store: ObjectStore,
    checkout: Checkout,
    contents: Mapping[str, Content],
    abandoned: Event | None = None,
) -> None:
    """Write the folder; `contents` has those of large files by path, other pointers stay."""
    with atomic_dir(checkout.folder) as folder:
        root = get_commit(_open(checkout), checkout.commit).tree
        for path, item in _walk(checkout, root, abandoned):
            if (content := contents.get(path)) is not None:
                copy_content(store, content, folder / path, mode=_mode(item))
            else:
                _write_item(item, folder / path)
        _sync(folder)
        touch(folder)


def _open(checkout: Checkout) -> pygit2.Repository:
    try:
        return bare_repos.open_repository(checkout.git)
    except pygit2.GitError:
        # The repository was deleted a moment ago.
        raise RevisionNotFound(checkout.commit) from None


def _sync(folder: Path) -> None:
    """Flush all files to the disk: after a power cut half a file would count as a whole one.

    The first fsync flushes most of them, so the others cost little.
    """
    for above, _, names in os.walk(folder):
        for path in (Path(above), *(Path(above, name) for name in names)):
            if not path.is_symlink():
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def _mode(item: pygit2.Object) -> int:
    return EXECUTABLE_MODE if item.filemode == FileMode.BLOB_EXECUTABLE else FILE_MODE


def _write_item(item: pygit2.Object, target: Path) -> None:
    if isinstance(item, pygit2.Tree):
        target.mkdir()
    elif isinstance(item, pygit2.Blob) and item.filemode == FileMode.LINK:
        # Its target counts inside the job; the hub never follows it.
        target.symlink_to(os.fsdecode(item.data))
    elif isinstance(item, pygit2.Blob):
        target.write_bytes(item.data)
        target.chmod(_mode(item))


def _walk(
    checkout: Checkout, root: pygit2.Tree, abandoned: Event | None
) -> Iterator[tuple[str, pygit2.Object]]:
    """Yield each entry with its path, a folder before its content.

    Raises CheckoutAbandoned, CommitTooLarge and NestedTooDeeply.
    """
    left = MAX_ENTRIES
    stack = [("", iter(root))]
    while stack:
        start, items = stack[-1]
        item = next(items, None)
        if item is None:
            stack.pop()
            continue
        left -= 1
        if left < 0:
            raise CommitTooLarge(checkout.commit, f"it has more than {MAX_ENTRIES:,} entries")
        if abandoned is not None and abandoned.is_set():
            raise CheckoutAbandoned
        name = os.fsdecode(item.raw_name or b"")
        # Git refuses such names too; were one in a pushed tree, it would lead out of the folder.
        if name in {"", ".", "..", ".git"} or "/" in name or item.filemode == FileMode.COMMIT:
            continue
        yield start + name, item
        if isinstance(item, pygit2.Tree):
            if len(stack) > MAX_DEPTH:
                raise NestedTooDeeply(MAX_DEPTH)
            stack.append((f"{start}{name}/", iter(item)))


def _lfs(item: pygit2.Blob, size: int) -> LfsPointer | None:
    if item.filemode == FileMode.LINK or size not in POINTER_SIZES:
        return None
    return parse_pointer(item.data)


def find_inside(folder: Path, path: str | None) -> Path | None:
    """Return a folder below another one; None where there is none, or a link leads to it."""
    inner = folder
    for part in path.split("/") if path else ():
        inner /= part
        if inner.is_symlink() or not inner.is_dir():
            return None
    return inner


async def add_prune_task(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Add the task that prunes checkouts, once for any day."""
    await add_daily(conn, PRUNE_TASK, delay=delay)


async def prune(database: Database) -> None:
    """Remove the checkouts that no job has mounted for a week, and do so again tomorrow."""
    async with database.transaction() as conn:
        await add_prune_task(conn, delay=INTERVAL)
    await remove_unused(database)


async def remove_unused(database: Database) -> None:
    """Remove the checkouts in the data folder of this machine that no job has mounted for a week."""
    data_dir = database.hub.settings.database.data_dir
    # Files have the real time, which test mode does not move.
    since = (clock.now() - clock.offset() - MAX_AGE).timestamp()
    unused = await asyncio.to_thread(_list_unused, data_dir, since=since)
    async with database.read() as conn:
        used = _mounted_commits(await store.list_specs_in_use(conn))
    for folder in unused:
        # An attempt may last longer than a week; what it mounts stays.
        if folder.name not in used:
            await asyncio.to_thread(_remove_checkout, folder)


def _mounted_commits(specs: list[str]) -> set[str]:
    decoded = (msgspec.json.decode(spec, type=Spec) for spec in specs)
    return {mount.commit for spec in decoded for mount in spec.mounts if mount.commit}


def _list_unused(data_dir: Path, *, since: float) -> list[Path]:
    """Return the folders of commits that no job used since then, and unfinished ones."""
    return [
        folder for folder in checkouts_folder(data_dir).glob("*/*") if _last_used(folder) < since
    ]


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _remove_checkout(folder: Path) -> None:
    with suppress(OSError):
        remove_tree(folder)
