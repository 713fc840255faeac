"""Records of volumes: what is prepared for an attempt, its folders, a bucket's snapshot."""

from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.runtime.records import BindMount

# In the folder of a mounted bucket: the files, the snapshot of them, and what became of their write-back
# once it is over: a sentence if nothing was written.
FILES = "files"
SNAPSHOT = "handed.json"
RESULT = "written-back"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAttempt:
    """The image, command and folders that an order for an attempt names."""

    image: str
    # The files of a space, a copy of the attempt's own; None: the job runs an image.
    content: Path | None
    argv: tuple[str, ...]
    binds: tuple[BindMount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSnapshot:
    """A file of a bucket as an attempt got it."""

    sha256: str
    # Of the copy: its content is unchanged as long as all of these are.
    size: int
    inode: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSnapshot:
    """The files of a bucket as an attempt got them; paths begin below the mounted folder."""

    repo_id: str
    files: dict[str, FileSnapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file in the folder of a bucket that may have changed."""

    path: str
    size: int
    # When it was last written, in nanoseconds since the epoch.
    modified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPath:
    """An entry in the folder of a bucket that cannot be read, or that no bucket can hold."""

    path: str
    # A sentence.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketDiff:
    """What an attempt has changed in the folder of a bucket."""

    changed: list[ChangedFile]
    # Only paths known to be gone: not those below a folder that cannot be read.
    removed: list[str]
    skipped: list[SkippedPath]


def space_folder(folder: Path) -> Path:
    """Return the folder with the files of a space."""
    return folder.absolute() / "app"


def bucket_folder(folder: Path, place: int) -> Path:
    """Return the folder of a bucket that is the volume in this place.

    It has the files, which the job sees, and beside them their snapshot, which the job cannot
    write to.
    """
    return folder.absolute() / "volumes" / str(place)


def frame_folder(folder: Path, place: int) -> Path:
    """Return the folder of the frame for a commit that is the volume in this place."""
    return bucket_folder(folder, place)
