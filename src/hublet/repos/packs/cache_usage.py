"""Usage of a node's cache of packs: how large it is, how often it had what was needed, and its metrics."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.storage.object_store import has_shared_store

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


class PackCacheMetrics(Collector):
    """What this process counted; the processes of a node share one cache, and each measures it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        usage = usage_of(self._settings.database.data_dir)
        is_used = has_shared_store(self._settings)
        lookups = CounterMetricFamily(
            "hublet_pack_cache_lookups",
            "Repositories opened: all packs were here, or some had to be fetched.",
            labels=["result"],
        )
        lookups.add_metric(["hit"], usage.hits)
        lookups.add_metric(["miss"], usage.misses)
        yield lookups
        yield CounterMetricFamily(
            "hublet_pack_cache_evictions", "Repositories evicted.", value=usage.evictions
        )
        yield GaugeMetricFamily(
            "hublet_pack_cache_bytes",
            "Bytes of cached packs, as of the last eviction and with what came since.",
            value=usage.bytes if is_used else None,
        )
        yield GaugeMetricFamily(
            "hublet_pack_cache_room_bytes",
            "Bytes that the cache may have (storage.cache_bytes).",
            value=self._settings.storage.cache_bytes if is_used else None,
        )
