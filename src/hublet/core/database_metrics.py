"""Metrics of the database's surroundings: its replica, its notices, its partitions by day."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hublet.core.database import Database, Reader, partitions
from hublet.core.database.partitions import DayTable, PartitionSurvey


class DatabaseMetrics(Collector):
    """What this process knows of the replica and of notices; nothing where there are none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[Metric]:
        yield from self._replica()
        yield from self._notices()

    def _replica(self) -> Iterator[Metric]:
        status = self._database.replica_status()
        yield GaugeMetricFamily(
            "hublet_replica_lag_seconds",
            "How late the replica was when it last answered.",
            value=None if status is None else status.lag_seconds,
        )
        yield GaugeMetricFamily(
            "hublet_replica_used",
            "1 while the replica answers, 0 while the primary does it all.",
            value=None if status is None else float(status.reason is None),
        )

    def _notices(self) -> Iterator[Metric]:
        counts = self._database.notices
        numbers = (
            ("announced", "Commits of this process that others are to hear of."),
            ("sent", "Notices sent; one stands for all commits of a moment on its channel."),
            ("heard", "Notices of other processes."),
        )
        for name, sentence in numbers:
            yield CounterMetricFamily(
                f"hublet_notices_{name}",
                sentence,
                value=None if counts is None else getattr(counts, name),
            )
        yield GaugeMetricFamily(
            "hublet_notices_connected",
            "1 while notices can be heard, 0 while work is only found by looking for it.",
            value=None if counts is None else float(counts.is_connected),
        )


class PartitionMetrics(Collector):
    """Partitions by day, on PostgreSQL, as they were at the last scrape; elsewhere nothing."""

    def __init__(self, database: Database, tables: Iterable[DayTable]) -> None:
        self._is_partitioned = database.kind == "postgresql"
        self._tables = tuple(tables)
        self._surveys: list[PartitionSurvey] = []

    async def count(self, conn: Reader) -> None:
        if self._is_partitioned:
            self._surveys = await partitions.survey(conn, self._tables)

    def collect(self) -> Iterator[Metric]:
        ahead = GaugeMetricFamily(
            "hublet_partition_days_ahead",
            "Days to come that have a partition already.",
            labels=["table"],
        )
        stray = GaugeMetricFamily(
            "hublet_partition_stray_rows",
            "Rows that no day's partition took, up to 10,000.",
            labels=["table"],
        )
        for each in self._surveys:
            ahead.add_metric([each.table], each.days_ahead)
            stray.add_metric([each.table], each.stray_rows)
        yield ahead
        yield stray
