"""Usage of a node's cache of packs: how large it is, and how often it had what was needed."""

from pathlib import Path

from hublet.core.dataclasses import dataclass

# Which packs of the list a folder has.
STATE = "packs.json"
# A folder with this file is no cache: its objects are nowhere else.
KEPT = "kept"


@dataclass(slots=True)
class CacheUsage:
    """The cache of a data folder, as this process knows it."""

    # Bytes when its folders were last measured, and what came in since; -1 before the first time.
    measured: int = 0
    fetched: int = -1
    is_running: bool = False
    hits: int = 0
    misses: int = 0
    evictions: int = 0

    @property
    def bytes(self) -> int:
        return self.measured + max(self.fetched, 0)


_usage: dict[Path, CacheUsage] = {}


def usage_of(data_dir: Path) -> CacheUsage:
    return _usage.setdefault(data_dir, CacheUsage())


def cached_sizes(data_dir: Path) -> dict[Path, int]:
    """Return the folders of cached repositories with their bytes."""
    return {
        folder: size
        for folder in (data_dir / "repos").glob("??/*.git")
        if (size := _cached_size(folder)) is not None
    }


def _cached_size(folder: Path) -> int | None:
    """Return the bytes of a cached repository; None for one that is no cache."""
    try:
        if not (folder / STATE).exists() or (folder / KEPT).exists():
            return None
        return sum(path.stat().st_size for path in (folder / "objects" / "pack").iterdir())
    except FileNotFoundError:
        return None
