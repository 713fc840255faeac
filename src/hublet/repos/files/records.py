"""Records of files in buckets and containers, and of their changes."""

from dataclasses import field
from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import RepoAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    path: str
    sha256: str
    size: int
    media_type: str | None = None
    # When it was changed where it came from, and when it arrived here.
    modified_at: datetime
    uploaded_at: datetime

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A beginning that several paths may share; it is there as long as a file is in it."""

    path: str


FileOrFolder = File | Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRemoval:
    """The file at this path is to go; that there is none is fine."""

    path: str


FileChange = File | FileRemoval


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold of the file that is there before it is replaced or removed."""

    # Digests of which it must have one, or "*" for any; None: nothing is asked.
    is_one_of: frozenset[str] | None = None
    # The same for what it must not have; "*": there must be no file.
    is_none_of: frozenset[str] | None = None

    def holds(self, file: File | None) -> bool:
        return (self.is_one_of is None or _has_digest(self.is_one_of, file)) and (
            self.is_none_of is None or not _has_digest(self.is_none_of, file)
        )


def _has_digest(digests: frozenset[str], file: File | None) -> bool:
    return file is not None and ("*" in digests or file.sha256 in digests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that is about to arrive, as the head of the request announces it."""

    path: str
    media_type: str
    # None: the moment it arrives.
    modified_at: datetime | None = None
    # What the sender says the SHA-256 of the content is, by the header that says it.
    digests: tuple[tuple[str, str], ...] = ()
    condition: Condition = field(default_factory=Condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAddition:
    """A file that is to be put: with its content, or with one that the hub has already."""

    path: str
    # Either the content itself, or its SHA-256.
    content: bytes | None = None
    sha256: str | None = None
    # Which repository has that content; None: the one that the batch changes.
    source: RepoAddress | None = None
    media_type: str
    modified_at: datetime | None = None
