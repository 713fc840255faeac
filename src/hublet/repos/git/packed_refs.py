"""packed-refs: git's own list of refs, written from the table just before git itself runs.

Everything here blocks on the disk; call it from a thread.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Git ignores the words of the first line that it does not know.
_HEADER = "# pack-refs with: sorted version="
_LONGEST_HEADER = 100


def version_of(folder: Path) -> int | None:
    """Return the version of the table that the list was written from; None: no list of ours."""
    try:
        with (folder / "packed-refs").open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    version = line.removeprefix(_HEADER).strip()
    return int(version) if line.startswith(_HEADER) and version.isdecimal() else None


def write(folder: Path, refs: Mapping[str, str], *, version: int) -> None:
    """Write the list, unless this version or a later one is there already.

    `refs` are commits by name, as they were at this version or later.
    """
    with _only_writer(folder):
        if (written := version_of(folder)) is not None and written >= version:
            return
        new = folder / "packed-refs.new"
        new.write_bytes(_text(refs, version))
        # Not forced to the disk: a list that a power cut spoils has no header, and is written anew.
        new.replace(folder / "packed-refs")


def _text(refs: Mapping[str, str], version: int) -> bytes:
    lines = sorted((name.encode(), sha.encode()) for name, sha in refs.items())
    header = f"{_HEADER}{version} \n".encode()
    return header + b"".join(b"%b %b\n" % (sha, name) for name, sha in lines)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    lock = os.open(folder / "packed-refs.writer", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
