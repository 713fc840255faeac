"""Samples of the metrics are written by each process, read as points of a day, and dropped after it."""

from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.metric_samples import MetricSampler, list_points, quantile
from hublet.core.metrics import Metrics
from tasks import add


def count(metrics: Metrics, *statuses: int, micros: int = 4000) -> None:
    for status in statuses:
        metrics.request(method="GET", route="/", status=status, micros=micros)


async def test_the_processes_of_a_minute_are_one_point(database: Database) -> None:
    first, second = Metrics(), Metrics()
    samplers = [
        MetricSampler(database, metrics, name=name)
        for metrics, name in ((first, "ada"), (second, "grace"))
    ]
    await add(database, "knit")
    count(first, *[200] * 50, 500, micros=4000)
    count(second, *[200] * 9, micros=40_000)
    for each in samplers:
        await each.sample()

    async with database.read() as conn:
        [point] = await list_points(conn)

    assert point.requests_per_second == pytest.approx(1)
    assert point.error_percent == pytest.approx(100 / 60)
    assert point.median_seconds is not None
    assert 0.0025 < point.median_seconds <= 0.005
    assert point.slow_seconds is not None
    assert 0.025 < point.slow_seconds <= 0.05
    assert point.tasks_waiting == 1
    assert point.database_bytes > 10_000


async def test_a_sample_has_what_was_counted_since_the_last(database: Database) -> None:
    metrics = Metrics()
    sampler = MetricSampler(database, metrics, name="ada")
    count(metrics, *[200] * 600)
    await sampler.sample()
    clock.move(timedelta(minutes=6))
    try:
        count(metrics, *[200] * 60)
        await sampler.sample()
        async with database.read() as conn:
            points = await list_points(conn)
    finally:
        clock.reset()

    assert [point.requests_per_second for point in points] == [10, 1]


async def test_samples_of_yesterday_are_dropped(database: Database) -> None:
    sampler = MetricSampler(database, Metrics(), name="ada")
    await sampler.sample()
    clock.move(timedelta(days=1, minutes=2))
    try:
        await sampler.sample()
        clock.reset()
        async with database.read() as conn:
            rows = await conn.fetch_all("SELECT at FROM metric_samples")
    finally:
        clock.reset()

    assert len(rows) == 1


@pytest.mark.parametrize(
    ("counts", "share", "seconds"),
    [
        pytest.param([], 0.5, None, id="nothing was counted"),
        pytest.param([0, 0, 0], 0.5, None, id="nothing was answered"),
        pytest.param([10], 0.5, 0.0005, id="in proportion within the first"),
        pytest.param([0, 10], 1.0, 0.0025, id="to the end of the second"),
        pytest.param([*[0] * 12, 5], 0.5, 10.0, id="longer than all"),
    ],
)
def test_a_quantile_lies_within_its_bucket(
    counts: list[int], share: float, seconds: float | None
) -> None:
    assert quantile(counts, share) == (None if seconds is None else pytest.approx(seconds))
