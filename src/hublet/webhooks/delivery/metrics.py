"""Metrics of deliveries, for Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hublet.webhooks.records import Outcome

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0)
_GROUPS = (1.0, 4.0, 16.0, 64.0, 128.0, 256.0)


class _Histogram:
    """Counts in plain numbers; Prometheus' shape is made when they are collected."""

    def __init__(self, name: str, sentence: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._sentence = sentence
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def collect(self) -> Metric:
        names = [*map(str, self._bounds), "+Inf"]
        sums = [sum(self._counts[: place + 1]) for place in range(len(names))]
        buckets = [(name, float(count)) for name, count in zip(names, sums, strict=True)]
        return HistogramMetricFamily(
            self._name, self._sentence, buckets=buckets, sum_value=self._sum
        )


class DeliveryMetrics(Collector):
    """Metrics of one worker; the hub's registry collects them with its own."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._outcomes: Counter[str] = Counter()
        self._connections: Counter[str] = Counter()
        self._lag = _Histogram("hublet_webhook_delay_seconds", "Time from due to sent.", _SECONDS)
        self._groups = _Histogram(
            "hublet_webhook_commit_size", "Outcomes written in one commit.", _GROUPS
        )

    def committed(self, group: Sequence[Outcome]) -> None:
        self._groups.add(len(group))
        for each in group:
            self._count(each)

    def _count(self, outcome: Outcome) -> None:
        attempt = outcome.attempt
        if attempt is None:
            self._outcomes[outcome.unsent or "handed-back"] += 1
            return
        self._outcomes["delivered" if outcome.succeeded else "failed"] += 1
        self._lag.add(max(0, attempt.started_at - outcome.delivery.due_at) / 1e6)
        if attempt.first_byte_micros is not None:
            reused = attempt.connect_micros is None
            self._connections["reused" if reused else "new"] += 1

    def collect(self) -> Iterator[Metric]:
        outcomes = CounterMetricFamily(
            "hublet_webhook_deliveries", "What became of deliveries.", labels=["outcome"]
        )
        for outcome, count in list(self._outcomes.items()):
            outcomes.add_metric([outcome], count)
        yield outcomes
        connections = CounterMetricFamily(
            "hublet_webhook_connections", "Connections of answered attempts.", labels=["kind"]
        )
        for kind, count in list(self._connections.items()):
            connections.add_metric([kind], count)
        yield connections
        yield GaugeMetricFamily(
            "hublet_webhook_in_flight", "Attempts that run now.", value=self._in_flight()
        )
        yield self._lag.collect()
        yield self._groups.collect()
