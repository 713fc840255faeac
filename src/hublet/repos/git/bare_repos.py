"""Bare repositories on the disk: their folders, creation, opening, repacking and removal; and packed-refs,
git's own list of refs, written from the table just before git itself runs.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pygit2

from hublet.repos.git import process, quarantine
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import FILE, CommitDraft, TreeItem, commit_data, tree_data
from hublet.repos.git.packs import WORKSPACE_SUFFIX, sync_folder

# Git itself begins at these numbers too.
MOST_LOOSE = 6700
MOST_PACKS = 50
# Unreachable objects may belong to a change that is just being written.
UNREACHABLE_KEPT = "2.weeks.ago"
_ABANDONED_AFTER = timedelta(days=1)


def folder_of(data_dir: Path, repo_id: str) -> Path:
    # Absolute, because git runs inside the folder. The last characters of an id differ most, so
    # folders fill evenly.
    return data_dir.absolute() / "repos" / repo_id[-2:] / f"{repo_id}.git"


def create_empty(folder: Path) -> None:
    """Make an empty bare repository whose main branch is called main."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    pygit2.init_repository(folder, bare=True, initial_head="main")


def create_workspace(folder: Path, *, of: Path) -> None:
    """Make a bare repository that reads the objects of another, and has its refs of this moment."""
    (folder / "objects" / "pack").mkdir(parents=True)
    (folder / "objects" / "info").mkdir()
    (folder / "objects" / "info" / "alternates").write_text(f"{of / 'objects'}\n")
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    with suppress(FileNotFoundError):
        shutil.copyfile(of / "packed-refs", folder / "packed-refs")


class FolderLock:
    """Lock on the folder of a repository, between tasks and between processes; it ends with `close`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def share(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def try_lock(folder: Path, *, exclusive: bool) -> FolderLock | None:
    """Lock a folder, which need not be there; None when others hold it otherwise."""
    path = folder.with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(descriptor := os.open(path, os.O_CREAT | os.O_RDWR, 0o644))
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        # Who removed the folder removed this file, too: then the lock is on nothing.
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    lock.close()
    return None


def open_repository(folder: Path) -> pygit2.Repository:
    """Open this very folder, without a search in the folders above it.

    It is closed, with its packs, as soon as nobody has it any more: what pygit2 lets each repository
    refer back to itself by goes, since a server collects garbage rarely. Refs are in the database.
    """
    repository = pygit2.Repository(str(folder), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
    for name in ("branches", "references", "remotes", "submodules"):
        delattr(repository, name)
    return repository


def remove(folder: Path) -> None:
    """Remove a repository; one that is gone already is fine."""
    shutil.rmtree(folder, ignore_errors=True)


def clear_abandoned(data_dir: Path, *, now: datetime) -> None:
    """Remove what processes that died left: halves of evictions, and workspaces of a day ago."""
    before = (now - _ABANDONED_AFTER).timestamp()
    for pattern in ("??/evicted-*", f"??/*{WORKSPACE_SUFFIX}"):
        for left in (data_dir / "repos").glob(pattern):
            with suppress(FileNotFoundError):
                if left.stat().st_mtime < before:
                    shutil.rmtree(left, ignore_errors=True)


def create_with_first_commit(
    folder: Path, *, author: str, at: datetime, files: Mapping[str, bytes]
) -> str:
    """Make a bare repository with one commit that holds these files; return its id.

    Everything is safe on the disk when this returns.
    """
    _create_durable(folder)
    draft = CommitDraft(author=author, at=at, message="initial commit")
    with ObjectWriter(folder) as writer:
        items = {
            name.encode(): TreeItem(FILE, bytes.fromhex(writer.add("blob", content)))
            for name, content in files.items()
        }
        tree = writer.add("tree", tree_data(items))
        commit = writer.add("commit", commit_data(draft, tree=tree, parents=()))
        writer.finish()
    return commit


async def create_copy(folder: Path, *, of: Path, shas: Iterable[str]) -> None:
    """Make a bare repository with these commits and tags of another one, and what they reach.

    Nothing else of the other one is copied. Everything is safe on the disk when this returns.
    """
    await asyncio.to_thread(_create_durable, folder)
    packs = folder / "objects" / "pack"
    variables = quarantine.variables(of, folder / "objects")
    with tempfile.TemporaryFile() as revisions:
        revisions.write("".join(f"{sha}\n" for sha in shas).encode())
        revisions.seek(0)
        # Git reuses what is packed already, and syncs the pack itself.
        command = ("pack-objects", "-q", "--revs", "--delta-base-offset", str(packs / "pack"))
        async with process.start_git(
            folder, "-c", "pack.threads=1", *command, stdin=revisions, variables=variables
        ) as git:
            await git.stdout.read()
            await git.end()
    await asyncio.to_thread(sync_folder, packs)


def _create_durable(folder: Path) -> None:
    create_empty(folder)
    _sync_repository(folder)


def _sync_repository(folder: Path) -> None:
    # Without these two files git does not take the folder for a repository.
    for name in ("HEAD", "config"):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    for changed in (folder / "objects", folder / "refs", folder, folder.parent):
        sync_folder(changed)


def needs_repack(folder: Path) -> bool:
    packs = sum(1 for _ in (folder / "objects" / "pack").glob("*.pack"))
    return packs > MOST_PACKS or _estimate_loose_objects(folder) > MOST_LOOSE


def _estimate_loose_objects(folder: Path) -> int:
    # Objects spread evenly over 256 folders, so one of them is enough for an estimate.
    try:
        return 256 * sum(1 for _ in (folder / "objects" / "17").iterdir())
    except FileNotFoundError:
        return 0


async def repack(folder: Path) -> None:
    """Pack reachable objects and remove old unreachable ones.

    packed-refs must be current. Readers and writers continue meanwhile.
    """
    await process.run_git(
        folder,
        *("-c", "pack.threads=1", "repack", "-q", "-d", "-l", "-A"),
        f"--unpack-unreachable={UNREACHABLE_KEPT}",
    )
    await process.run_git(folder, "prune", f"--expire={UNREACHABLE_KEPT}")


# Git ignores the words of the first line that it does not know.
_HEADER = "# pack-refs with: sorted version="
_LONGEST_HEADER = 100


def packed_refs_version(folder: Path) -> int | None:
    """Return the version of the table that the list was written from; None: no list of ours."""
    try:
        with (folder / "packed-refs").open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    version = line.removeprefix(_HEADER).strip()
    return int(version) if line.startswith(_HEADER) and version.isdecimal() else None


def write_packed_refs(folder: Path, refs: Mapping[str, str], *, version: int) -> None:
    """Write the list, unless this version or a later one is there already.

    `refs` are commits by name, as they were at this version or later.
    """
    with _only_writer(folder):
        if (written := packed_refs_version(folder)) is not None and written >= version:
            return
        new = folder / "packed-refs.new"
        new.write_bytes(_text(refs, version))
        # Not forced to the disk: a list that a power cut spoils has no header, and is written anew.
        new.replace(folder / "packed-refs")


def _text(refs: Mapping[str, str], version: int) -> bytes:
    lines = sorted((name.encode(), sha.encode()) for name, sha in refs.items())
    header = f"{_HEADER}{version} \n".encode()
    return header + b"".join(b"%b %b\n" % (sha, name) for name, sha in lines)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    lock = os.open(folder / "packed-refs.writer", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
