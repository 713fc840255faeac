"""Records of files in buckets and containers, and of their changes."""

import hashlib
from dataclasses import field
from datetime import datetime

from hublet.core.dataclasses import dataclass
from hublet.repos.records import RepoAddress
from hublet.storage.xet_hashes import ZERO_HASH, to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    path: str
    sha256: str
    size: int
    # Its file hash of Xet; None until the content is cut.
    xet_hash: str | None = None
    media_type: str | None = None
    # When it was changed where it came from, and when it arrived here.
    modified_at: datetime
    uploaded_at: datetime

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A prefix that several paths share; it exists as long as a file is in it."""

    path: str
    # Of the first of its files, by path: to find the last upload would be to read them all.
    uploaded_at: datetime


FileOrFolder = File | Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRemoval:
    """A file that is to be removed, if it exists."""

    path: str


FileChange = File | FileRemoval


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Precondition on the current file (If-Match, If-None-Match) before it is replaced or removed."""

    # Digests of which it must have one, or "*" for any; None: no condition.
    is_one_of: frozenset[str] | None = None
    # Digests that it must not have; "*": there must be no file.
    is_none_of: frozenset[str] | None = None

    def holds(self, file: File | None) -> bool:
        return (self.is_one_of is None or _has_digest(self.is_one_of, file)) and (
            self.is_none_of is None or not _has_digest(self.is_none_of, file)
        )


def _has_digest(digests: frozenset[str], file: File | None) -> bool:
    return file is not None and ("*" in digests or file.sha256 in digests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that is about to be uploaded, as the headers of the request announce it."""

    path: str
    media_type: str
    # None: the request does not say.
    size: int | None = None
    # None: the time of the upload.
    modified_at: datetime | None = None
    # Pairs of a header and the SHA-256 of the content that it announces.
    digests: tuple[tuple[str, str], ...] = ()
    condition: Condition = field(default_factory=Condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldContent:
    """Content that a repository has, so that a file may have it too."""

    sha256: str
    size: int
    xet_hash: str | None = None
    # The repository; None: the one that the file is for.
    holder_id: str | None = None


# The content of an empty file, which everybody has.
NO_CONTENT_HASH = to_text(ZERO_HASH)
NO_CONTENT = HeldContent(sha256=hashlib.sha256().hexdigest(), size=0, xet_hash=NO_CONTENT_HASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAddition:
    """A file that is to be stored: with its content, or with content that the hub has already."""

    path: str
    # Either the content itself, or its SHA-256 or file hash of Xet.
    content: bytes | None = None
    content_hash: str | None = None
    # The repository that has that content; None: the one that the batch changes.
    source: RepoAddress | None = None
    media_type: str
    modified_at: datetime | None = None
