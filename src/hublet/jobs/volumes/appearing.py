"""Folders that are there entirely or not at all. Blocks on the disk; call it from a thread."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hublet.jobs.folders import remove

FOLDER = 0o755
_PREFIX = ".incoming-"


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Yield a folder to be filled, which gets its name when the block has ended well.

    Who comes second throws their own away: whatever has the name already is as good.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=target.parent))
    try:
        incoming.chmod(FOLDER)
        yield incoming
        try:
            incoming.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        with suppress(OSError):
            remove(incoming)
