"""Preupload: tells a client which files to leave out and which content is there already."""

import asyncio
from pathlib import Path

from hublet.core.database import Database
from hublet.core.light_dataclasses import dataclass
from hublet.repos import blobs_store as blobs
from hublet.repos.commits.targets import CommitAddress, get_target
from hublet.repos.git import trees
from hublet.repos.git.bare_repos import folder_of
from hublet.repos.git.patterns import IgnoreRules
from hublet.repos.git.trees import GitEntry
from hublet.tokens.records import Caller

_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_FILE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAdvice:
    path: str
    is_ignored: bool
    # What git calls the content that is there now; None: nothing, or not known.
    git_sha1: str | None


async def advise(
    database: Database,
    caller: Caller,
    address: CommitAddress,
    paths: list[str],
    *,
    ignore: str | None,
) -> list[FileAdvice]:
    """Tell of each file whether .gitignore leaves it out and what its present content is."""
    async with database.read() as conn:
        target = await get_target(conn, caller, address)
    folder = folder_of(database.hub.settings.database.data_dir, target.repo.id)
    entries, ignored = await asyncio.to_thread(_inspect, folder, target.head, paths, ignore)
    large = [entry.lfs.sha256 for entry in entries.values() if entry.lfs is not None]
    async with database.read() as conn:
        found = await blobs.find_in_repo(conn, target.repo.id, large) if large else {}
    names = {digest: blob.git_sha1 for digest, blob in found.items()}
    return [
        FileAdvice(
            path=path, is_ignored=path in ignored, git_sha1=_git_sha1(entries.get(path), names)
        )
        for path in paths
    ]


def _inspect(
    folder: Path, commit: str, paths: list[str], ignore: str | None
) -> tuple[dict[str, GitEntry], set[str]]:
    found = {entry.path: entry for entry in trees.find_entries(folder, commit, paths)}
    rules = IgnoreRules(_ignore_file(folder, commit) if ignore is None else ignore)
    return found, {path for path in paths if rules.ignores(path)}


def _ignore_file(folder: Path, commit: str) -> str:
    found = trees.find_entries(folder, commit, [_IGNORE_FILE])
    if not found or found[0].type != "file" or found[0].size > _LARGEST_IGNORE_FILE:
        return ""
    return trees.read_blob(folder, found[0].oid).decode(errors="replace")


def _git_sha1(entry: GitEntry | None, names: dict[str, str | None]) -> str | None:
    if entry is None or entry.type != "file":
        return None
    return entry.oid if entry.lfs is None else names.get(entry.lfs.sha256)
