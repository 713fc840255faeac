"""Blame: which commit each line of a file comes from."""

import asyncio
import re
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import EntryNotFound, GitFailed
from hublet.repos.git import bare_repos, process
from hublet.repos.git.history import CommitInfo, describe
from hublet.repos.git.trees import GitEntry, get_commit, get_entry, read_blob

# Larger files, and those whose history takes longer to walk, have no blame.
MAX_BYTES = 1 << 20
MAX_LINES = 10_000
LONGEST_SECONDS = 20

_ORIGIN = re.compile(rb"^([0-9a-f]{40}) \d+ (\d+)(?: \d+)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameHunk:
    """Neighbouring lines that come from one commit."""

    commit: CommitInfo
    # The number of the first line, from 1.
    start: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    entry: GitEntry
    text: str
    hunks: tuple[BlameHunk, ...]
    # Why there is none, as a sentence; empty when there is.
    refusal: str = ""


async def blame(folder: Path, commit: str, path: str) -> Blame:
    """Return the origin of the lines of a file as it is in a commit."""
    entry, data = await asyncio.to_thread(_read, folder, commit, path)
    if refusal := _refusal(entry, data):
        return Blame(entry=entry, text="", hunks=(), refusal=refusal)
    text = data.decode(errors="replace")
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            report = await _run(folder, commit, path)
    except TimeoutError:
        refusal = "The history of this file is too long to say where its lines come from."
        return Blame(entry=entry, text=text, hunks=(), refusal=refusal)
    hunks = await asyncio.to_thread(_hunks, folder, _origins(report))
    return Blame(entry=entry, text=text, hunks=hunks)


def _read(folder: Path, commit: str, path: str) -> tuple[GitEntry, bytes]:
    entry = get_entry(folder, commit, path)
    if entry.type != "file":
        raise EntryNotFound(path, commit=commit)
    is_small = entry.lfs is None and entry.size <= MAX_BYTES
    return entry, read_blob(folder, entry.oid) if is_small else b""


def _refusal(entry: GitEntry, data: bytes) -> str:
    if entry.lfs is not None:
        return "This file is in LFS: it changes as a whole."
    if entry.size > MAX_BYTES or data.count(b"\n") > MAX_LINES:
        return "This file is too large to say where its lines come from."
    return "This file is no text." if b"\x00" in data else ""


async def _run(folder: Path, commit: str, path: str) -> bytes:
    arguments = ("blame", "--porcelain", commit, "--", path)
    try:
        async with process.start_git(folder, *arguments, stdin=asyncio.subprocess.DEVNULL) as git:
            report = await git.stdout.read()
            await git.end()
    except GitFailed:
        raise EntryNotFound(path, commit=commit) from None
    return report


def _origins(report: bytes) -> list[tuple[str, int]]:
    """Return the commit and number of each line, in the order of the file."""
    found = ((match[1].decode(), int(match[2])) for match in _ORIGIN.finditer(report))
    return sorted(found, key=lambda origin: origin[1])


def _hunks(folder: Path, origins: list[tuple[str, int]]) -> tuple[BlameHunk, ...]:
    repository = bare_repos.open_repository(folder)
    commits = {sha: describe(get_commit(repository, sha)) for sha in {sha for sha, _ in origins}}
    starts = [
        index
        for index, (sha, _) in enumerate(origins)
        if index == 0 or origins[index - 1][0] != sha
    ]
    ends = [*starts[1:], len(origins)]
    return tuple(
        BlameHunk(commit=commits[origins[start][0]], start=start + 1, count=end - start)
        for start, end in zip(starts, ends, strict=True)
    )
