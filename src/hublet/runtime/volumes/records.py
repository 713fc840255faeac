"""Records of volumes: what is prepared for an attempt, where it lies, a bucket's snapshot."""

from pathlib import Path

from hublet.core.light_dataclasses import dataclass
from hublet.runtime.records import BindMount


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAttempt:
    """What an Order says of image, command and folders."""

    image: str
    # The files of a space, a copy of the attempt's own; None: the job runs an image.
    content: Path | None
    argv: tuple[str, ...]
    binds: tuple[BindMount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSnapshot:
    """A file of a bucket as it was handed to an attempt."""

    sha256: str
    # Of the copy: when none of this changed, nor did its content.
    size: int
    inode: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSnapshot:
    """What a bucket was when an attempt got it; paths begin below the mounted folder."""

    repo_id: str
    files: dict[str, FileSnapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file in the folder of a bucket that may be another one than it was."""

    path: str
    size: int
    # When it was last written, in nanoseconds since the epoch.
    modified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPath:
    """Something in the folder of a bucket that no bucket can hold, or that cannot be read."""

    path: str
    # A sentence.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketDiff:
    """What an attempt has made of the folder of a bucket."""

    changed: list[ChangedFile]
    # Nothing of which nobody can tell because the folder is closed.
    gone: list[str]
    left: list[SkippedPath]


FILES = "files"
NOTE = "handed.json"


def space_folder(folder: Path) -> Path:
    """Where the files of a space lie."""
    return folder.absolute() / "app"


def bucket_folder(folder: Path, place: int) -> Path:
    """Where a bucket lies that is the volume in this place.

    It has the files, which the job sees, and beside them a note of what they were, which it
    cannot write to.
    """
    return folder.absolute() / "volumes" / str(place)


def frame_folder(folder: Path, place: int) -> Path:
    """Where the frame of a commit lies that is the volume in this place."""
    return bucket_folder(folder, place)
