"""Preupload: how to upload files, and which need no upload: .gitignore or the content says so.

Files that git should not hold go to LFS: those that .gitattributes names, binary ones and large ones.
"""

import asyncio
import codecs
from collections.abc import Mapping, Sequence
from pathlib import Path

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.commits.intake import LARGEST_IN_GIT
from hublet.repos.commits.targets import CommitAddress, get_target
from hublet.repos.git import trees
from hublet.repos.git.patterns import GIT_ATTRIBUTES_FILE, GitAttributes, IgnoreRules
from hublet.repos.git.trees import GitEntry
from hublet.repos.usage import check_quota
from hublet.tokens.records import Caller

_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_FILE = 1 << 16
# It has a line for each binary file that no other line covers.
_LARGEST_ATTRIBUTES_FILE = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedFile:
    """A file that somebody is about to upload."""

    path: str
    # None: not known.
    size: int | None = None
    # Its first bytes.
    sample: bytes = b""

    @property
    def is_large(self) -> bool:
        return self.size is not None and self.size > LARGEST_IN_GIT

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    @property
    def is_binary(self) -> bool:
        """Tell whether its first bytes are no text in UTF-8; they may end within a letter."""
        is_all = self.size is not None and len(self.sample) >= self.size
        try:
            codecs.getincrementaldecoder("utf-8")().decode(self.sample, final=is_all)
        except UnicodeDecodeError:
            return True
        return b"\0" in self.sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Files that somebody is about to upload, and the rules to go by instead of those in git."""

    files: Sequence[OfferedFile]
    ignore: str | None = None
    attributes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAdvice:
    path: str
    is_ignored: bool
    is_lfs: bool
    # The SHA-256 of the present content for LFS, else its id as a git blob; None: there is none,
    # or it is not known.
    oid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What a commit has at the paths of an offer, and what its rules say of them."""

    entries: Mapping[str, GitEntry]
    ignored: frozenset[str]
    lfs: frozenset[str]


async def advise(
    database: Database, caller: Caller, address: CommitAddress, offer: Offer
) -> list[FileAdvice]:
    """Return for each file how to upload it, and the id of its present content.

    Raise StorageFull when the owner has no room for those that are new.
    """
    async with database.read() as conn:
        target = await get_target(conn, caller, address)
    folder = await repos.open_folder(database, target.repo.id)
    rules = await asyncio.to_thread(_inspect, folder, target.head, offer)
    large = [entry.lfs.sha256 for entry in rules.entries.values() if entry.lfs is not None]
    new = sum(_new_bytes(file, rules) for file in offer.files)
    async with database.read() as conn:
        if new:
            await check_quota(conn, target.repo.owner_id, new, before_upload=True)
        blobs = await blobs_store.find_in_repo(conn, target.repo.id, large) if large else {}
    git_ids = {digest: blob.git_sha1 for digest, blob in blobs.items()}
    return [_advice(file.path, rules, git_ids) for file in offer.files]


def _new_bytes(file: OfferedFile, rules: _Rules) -> int:
    """Return how many bytes outside git a file brings; one of the same size is probably the same."""
    if file.path not in rules.lfs or file.path in rules.ignored:
        return 0
    entry = rules.entries.get(file.path)
    present = None if entry is None or entry.lfs is None else entry.lfs.size
    return 0 if file.size in {None, present} else file.size or 0


def _inspect(folder: Path, commit: str, offer: Offer) -> _Rules:
    paths = [file.path for file in offer.files]
    entries = {entry.path: entry for entry in trees.find_entries(folder, commit, paths)}
    ignore, attributes = offer.ignore, offer.attributes
    if ignore is None:
        ignore = _read_text(folder, commit, _IGNORE_FILE, largest=_LARGEST_IGNORE_FILE)
    if attributes is None:
        attributes = _read_text(
            folder, commit, GIT_ATTRIBUTES_FILE, largest=_LARGEST_ATTRIBUTES_FILE
        )
    ignore_rules, git_attributes = IgnoreRules(ignore), GitAttributes(attributes)
    return _Rules(
        entries=entries,
        ignored=frozenset(path for path in paths if ignore_rules.ignores(path)),
        lfs=frozenset(file.path for file in offer.files if _is_lfs(file, git_attributes)),
    )


def _is_lfs(file: OfferedFile, attributes: GitAttributes) -> bool:
    # Nothing is there to point to in an empty file, and git itself must read its attributes.
    if file.is_empty or file.path == GIT_ATTRIBUTES_FILE:
        return False
    return file.is_large or attributes.is_lfs(file.path) or file.is_binary


def _read_text(folder: Path, commit: str, path: str, *, largest: int) -> str:
    entry = next(iter(trees.find_entries(folder, commit, [path])), None)
    if entry is None or entry.type != "file" or entry.size > largest:
        return ""
    return trees.read_blob(folder, entry.oid).decode(errors="replace")


def _advice(path: str, rules: _Rules, git_ids: Mapping[str, str | None]) -> FileAdvice:
    entry, is_lfs = rules.entries.get(path), path in rules.lfs
    return FileAdvice(
        path=path,
        is_ignored=path in rules.ignored,
        is_lfs=is_lfs,
        oid=_present_oid(entry, git_ids, is_lfs=is_lfs),
    )


def _present_oid(
    entry: GitEntry | None, git_ids: Mapping[str, str | None], *, is_lfs: bool
) -> str | None:
    if entry is None or entry.type != "file":
        return None
    if entry.lfs is None:
        return None if is_lfs else entry.oid
    # A pointer whose content is missing needs the upload.
    if entry.lfs.sha256 not in git_ids:
        return None
    return entry.lfs.sha256 if is_lfs else git_ids[entry.lfs.sha256]
