"""File cache: what takes long to compute, compressed on the disk, least recently used goes first.

Everything here blocks on the disk; call it from a thread. A cache may be emptied at any time: what
cannot be read or written is computed again.
"""

import gzip
import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from hublet.core.clock import now

MAX_BYTES = 256 << 20
# How much may be written before the folder is looked through.
_SWEEP_BYTES = MAX_BYTES // 16
# An entry in use is marked as such at most this often.
_MARK_SECONDS = 3600


class FileCache:
    """Entries in groups: a group is removed with what it belongs to, such as a repository."""

    def __init__(
        self, folder: Path, *, max_bytes: int = MAX_BYTES, sweep_bytes: int = _SWEEP_BYTES
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._sweep_bytes = sweep_bytes
        self._written = 0

    def find(self, group: str, key: str) -> bytes | None:
        path = self._path(group, key)
        try:
            compressed = path.read_bytes()
            found = gzip.decompress(compressed)
            if now().timestamp() - path.stat().st_mtime > _MARK_SECONDS:
                os.utime(path)
        except (OSError, EOFError, zlib.error):
            return None
        # Nothing at all is no gzip file, and passes for one.
        return found if compressed else None

    def put(self, group: str, key: str, value: bytes) -> None:
        path = self._path(group, key)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(gzip.compress(value, 5, mtime=0))
            Path(file.name).replace(path)
            self._written += path.stat().st_size
        if self._written >= self._sweep_bytes:
            self._written = 0
            self.sweep()

    def remove(self, group: str) -> None:
        shutil.rmtree(self._folder / group, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the entries that were not used for longest, until the rest fits."""
        entries = sorted(self._entries(), reverse=True)
        kept = 0
        for _, size, path in entries:
            kept += size
            if kept > self._max_bytes:
                path.unlink(missing_ok=True)

    def _entries(self) -> list[tuple[float, int, Path]]:
        found = []
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        return found

    def _path(self, group: str, key: str) -> Path:
        return self._folder / group / sha256(key.encode()).hexdigest()[:40]


_caches: dict[Path, FileCache] = {}


def cache_in(data_dir: Path) -> FileCache:
    """Return the one cache of a data folder."""
    folder = data_dir.absolute() / "cache"
    return _caches.setdefault(folder, FileCache(folder))
