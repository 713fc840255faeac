"""What an operator can measure of jobs."""

from prometheus_client import CollectorRegistry, Gauge

from hublet.core.database import Reader
from hublet.jobs import store
from hublet.jobs.records import Stage


class JobGauge:
    """Jobs by their stage, counted when somebody looks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauge = Gauge("hublet_jobs", "Jobs by stage.", ["stage"], registry=registry)

    async def count(self, conn: Reader) -> None:
        counts = await store.count_by_stage(conn)
        for stage in Stage:
            self._gauge.labels(stage).set(counts.get(stage, 0))
