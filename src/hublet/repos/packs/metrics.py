"""Metrics of a node's cache of packs, where packs lie in a shared store."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hublet.core.config import Settings
from hublet.repos.packs.cache_usage import usage_of
from hublet.storage.object_store import has_shared_store


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
