"""Preupload: which files a client need not upload, because .gitignore or the content says so."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.commits.intake import LARGEST_IN_GIT
from hublet.repos.commits.targets import CommitAddress, get_target
from hublet.repos.git import trees
from hublet.repos.git.patterns import IgnoreRules
from hublet.repos.git.trees import GitEntry
from hublet.repos.usage import check_quota
from hublet.tokens.records import Caller

_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_FILE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAdvice:
    path: str
    is_ignored: bool
    # The id of the present content as a git blob; None: there is none, or it is not known.
    git_sha1: str | None


async def advise(
    database: Database,
    caller: Caller,
    address: CommitAddress,
    sizes: Mapping[str, int],
    *,
    ignore: str | None,
) -> list[FileAdvice]:
    """Return for each file whether .gitignore excludes it, and the id of its present content.

    Raise StorageFull when the owner has no room for those that are new.
    """
    paths = list(sizes)
    async with database.read() as conn:
        target = await get_target(conn, caller, address)
    folder = repos.git_folder(database, target.repo.id)
    entries, ignored = await asyncio.to_thread(_inspect, folder, target.head, paths, ignore)
    large = [entry.lfs.sha256 for entry in entries.values() if entry.lfs is not None]
    new = _new_bytes({path: sizes[path] for path in paths if path not in ignored}, entries)
    async with database.read() as conn:
        if new:
            await check_quota(conn, target.repo.owner_id, new, before_upload=True)
        blobs = await blobs_store.find_in_repo(conn, target.repo.id, large) if large else {}
    git_ids = {digest: blob.git_sha1 for digest, blob in blobs.items()}
    return [
        FileAdvice(
            path=path, is_ignored=path in ignored, git_sha1=_git_sha1(entries.get(path), git_ids)
        )
        for path in paths
    ]


def _new_bytes(sizes: Mapping[str, int], entries: Mapping[str, GitEntry]) -> int:
    """Return how many bytes outside git the files bring; one of the same size is probably the same."""
    return sum(
        size
        for path, size in sizes.items()
        if size > LARGEST_IN_GIT and (path not in entries or _size(entries[path]) != size)
    )


def _size(entry: GitEntry) -> int:
    return entry.size if entry.lfs is None else entry.lfs.size


def _inspect(
    folder: Path, commit: str, paths: list[str], ignore: str | None
) -> tuple[dict[str, GitEntry], set[str]]:
    entries = {entry.path: entry for entry in trees.find_entries(folder, commit, paths)}
    rules = IgnoreRules(_ignore_file(folder, commit) if ignore is None else ignore)
    return entries, {path for path in paths if rules.ignores(path)}


def _ignore_file(folder: Path, commit: str) -> str:
    entry = next(iter(trees.find_entries(folder, commit, [_IGNORE_FILE])), None)
    if entry is None or entry.type != "file" or entry.size > _LARGEST_IGNORE_FILE:
        return ""
    return trees.read_blob(folder, entry.oid).decode(errors="replace")


def _git_sha1(entry: GitEntry | None, git_ids: dict[str, str | None]) -> str | None:
    if entry is None or entry.type != "file":
        return None
    return entry.oid if entry.lfs is None else git_ids.get(entry.lfs.sha256)
