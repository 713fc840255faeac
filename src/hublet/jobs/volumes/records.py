"""What an attempt finds prepared, and what is remembered of it until it has ended."""

from pathlib import Path

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.runners.records import Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What an Order says of image, command and folders."""

    image: str
    # The files of a space, a copy of the attempt's own; None: the job runs an image.
    content: Path | None
    argv: tuple[str, ...]
    binds: tuple[Bind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file of a bucket as it was handed to an attempt."""

    sha256: str
    # Of the copy: when none of this changed, nor did its content.
    size: int
    inode: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What a bucket was when an attempt got it; paths begin below the mounted folder."""

    repo_id: str
    files: dict[str, Seen]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file in the folder of a bucket that may be another one than it was."""

    path: str
    size: int
    # When it was last written, in nanoseconds since the epoch.
    modified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something in the folder of a bucket that no bucket can hold, or that cannot be read."""

    path: str
    # A sentence.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What an attempt has made of the folder of a bucket."""

    changed: list[Found]
    # Nothing of which nobody can tell because the folder is closed.
    gone: list[str]
    left: list[Left]
