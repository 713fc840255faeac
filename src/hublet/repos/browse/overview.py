"""Overview of a commit: the commit itself, its README.md, how many files it has and how large they are."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.cards import README
from hublet.repos.git import bare_repos, history, trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import Repo

# Of a commit with more files and folders only so many are counted.
MOST_COUNTED = 2_000
# Of a longer README.md only the beginning is shown.
_LARGEST_README = 2_000_000
_LONGEST_TITLE = 200
MOST_SHARDS = 200
_WEIGHTS = re.compile(r"[^/]+\.safetensors")
_WHOLE_MODEL = "model.safetensors"
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
# Commits never change, and an overview is small.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoOverview:
    # With the beginning of its title, and no message.
    commit: CommitInfo
    # None also for one in LFS.
    readme: GitEntry | None
    # How many there are, and what they hold together.
    files: int
    size: int
    # Whether there are more files than were counted.
    is_cut: bool
    # The safetensors files that make up the model: one, or all its shards.
    weights: tuple[GitEntry, ...] = ()


async def get_overview(database: Database, repo: Repo) -> RepoOverview | None:
    """Return the overview of the main branch; None when there is nothing on it."""
    if repo.head_sha is None:
        return None
    folder = await repos.open_folder(database, repo.id)
    return await asyncio.to_thread(_read_overview, folder, repo.head_sha)


async def read_readme(database: Database, repo: Repo, readme: GitEntry) -> str:
    folder = await repos.open_folder(database, repo.id)
    content = await asyncio.to_thread(trees.read_blob, folder, readme.oid)
    return content[:_LARGEST_README].decode(errors="replace")


@lru_cache(_REMEMBERED)
def _read_overview(folder: Path, sha: str) -> RepoOverview:
    found = trees.list_tree(folder, sha, recursive=True, limit=MOST_COUNTED + 1)
    files = [entry for entry in islice(found, MOST_COUNTED) if entry.type == "file"]
    readme = next(iter(trees.find_entries(folder, sha, [README])), None)
    is_shown = readme is not None and readme.type == "file" and readme.lfs is None
    commit = history.describe(trees.get_commit(bare_repos.open_repository(folder), sha))
    return RepoOverview(
        commit=replace(commit, title=commit.title[:_LONGEST_TITLE], message=""),
        readme=readme if is_shown else None,
        files=len(files),
        size=sum(entry.size for entry in files),
        is_cut=len(found) > MOST_COUNTED,
        weights=_weights_of(files),
    )


def _weights_of(files: Sequence[GitEntry]) -> tuple[GitEntry, ...]:
    """Return `model.safetensors`, or its shards, or the only file of the kind beside the card."""
    found = {entry.path: entry for entry in files if _WEIGHTS.fullmatch(entry.path)}
    if whole := found.get(_WHOLE_MODEL):
        return (whole,)
    shards = tuple(entry for path, entry in found.items() if _SHARD.fullmatch(path))
    if shards:
        return shards if len(shards) <= MOST_SHARDS else ()
    return tuple(found.values()) if len(found) == 1 else ()
