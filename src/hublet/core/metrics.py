"""Metrics in the Prometheus format."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hublet.core import outbox, queue
from hublet.core.database import Database, Reader
from hublet.core.metric_group import MetricGroup

# The bounds of how long requests take, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_BUCKET_MICROS = tuple(round(seconds * 1e6) for seconds in BUCKETS)


class Metrics(Collector):
    """The hub's metrics, in a registry of their own so that two hubs can share a process.

    Requests are counted in plain numbers and rendered at a scrape: the library's own
    counters lock, and would cost more than looking up a token.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.outbox = Gauge(
            "hublet_outbox_waiting", "Events not yet handed on.", registry=self.registry
        )
        self.tasks = Gauge("hublet_tasks_waiting", "Tasks not yet done.", registry=self.registry)
        self.parked = Gauge(
            "hublet_tasks_parked", "Tasks that failed too often.", registry=self.registry
        )
        self.database_bytes = Gauge(
            "hublet_database_bytes", "Size of the database.", registry=self.registry
        )
        # Counts of features, read from the database at each scrape.
        self.counts: list[Callable[[Reader], Awaitable[None]]] = []
        # The processes whose metrics a scrape of this one shows too.
        self.group: MetricGroup | None = None
        self._requests: dict[tuple[str, str, int], int] = {}
        self._durations = [0] * (len(BUCKETS) + 1)
        self._total_micros = 0

    def request(self, *, method: str, route: str, status: int, micros: int) -> None:
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._durations[bisect_left(_BUCKET_MICROS, micros)] += 1
        self._total_micros += micros

    async def refresh(self, database: Database) -> None:
        """Set the gauges of what stands in the database."""
        self.database_bytes.set(await database.size())
        async with database.read() as conn:
            self.outbox.set(await outbox.count_waiting(conn))
            self.tasks.set(await queue.count_waiting(conn))
            self.parked.set(await queue.count_parked(conn))
            for count in self.counts:
                await count(conn)

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "hublet_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for (method, route, status), count in list(self._requests.items()):
            requests.add_metric([method, route, str(status)], count)
        yield requests
        yield HistogramMetricFamily(
            "hublet_request_seconds",
            "Time to answer.",
            buckets=self._cumulated(),
            sum_value=self._total_micros / 1e6,
        )

    def _cumulated(self) -> list[tuple[str, float]]:
        bounds = [*map(str, BUCKETS), "+Inf"]
        counts = [sum(self._durations[: place + 1]) for place in range(len(bounds))]
        return [(bound, float(count)) for bound, count in zip(bounds, counts, strict=True)]

    async def render(self) -> bytes:
        """Return the metrics of this process, or of all of its group."""
        if self.group is None:
            return generate_latest(self.registry)
        return await self.group.render(self.registry)
