"""Overview of a commit: the commit itself, its README.md, how many files it has and how large they are."""

import asyncio
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.repos import safetensors
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
        weights=find_weights(folder, sha),
    )


def find_weights(folder: Path, sha: str) -> tuple[GitEntry, ...]:
    """Return the safetensors files beside the card that make up the model of a commit."""
    tree = trees.get_commit(bare_repos.open_repository(folder), sha).tree
    names = [name.decode(errors="replace") for name in trees.ids_in(tree) if is_of_weights(name)]
    indexed = _read_index(folder, sha) if safetensors.INDEX_FILE in names else ()
    found = safetensors.weights_among(names, indexed=indexed)
    entries = trees.find_entries(folder, sha, found)
    return tuple(entry for entry in entries if entry.type == "file" and not entry.is_link)


def is_of_weights(name: bytes) -> bool:
    """Tell whether a file of this name beside the card may change what the model is made of."""
    return name.endswith((b".safetensors", safetensors.INDEX_FILE.encode()))


def _read_index(folder: Path, sha: str) -> tuple[str, ...]:
    for entry in trees.find_entries(folder, sha, [safetensors.INDEX_FILE]):
        if entry.type == "file" and entry.lfs is None and entry.size <= safetensors.MAX_INDEX_BYTES:
            return safetensors.shards_in_index(trees.read_blob(folder, entry.oid))
    return ()
