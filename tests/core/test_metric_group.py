"""Metrics of several processes in one scrape."""

import socket
from contextlib import AsyncExitStack
from pathlib import Path

from hublet.core.metric_group import MetricGroup, answering
from hublet.core.metrics import Metrics


def a_process(requests: int, waiting: int) -> Metrics:
    metrics = Metrics()
    for _ in range(requests):
        metrics.request(method="GET", route="/", status=200, micros=10)
    metrics.outbox.set(waiting)
    return metrics


async def test_counts_are_told_apart_by_process_and_levels_of_the_hub_shown_once(
    tmp_path: Path,
) -> None:
    paths = {name: str(tmp_path / name) for name in ("api-1", "api-2", "gone")}
    group = {"api-1": a_process(2, waiting=7), "api-2": a_process(3, waiting=0)}
    async with AsyncExitStack() as stack:
        for name, metrics in group.items():
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(paths[name])
            listener.listen()
            await stack.enter_async_context(answering(listener, metrics.registry))
        group["api-1"].group = MetricGroup("api-1", paths)

        text = (await group["api-1"].render()).decode()

    counted = [line for line in text.splitlines() if line.startswith("hublet_requests_total")]
    labels = 'method="GET",process="{}",route="/",status="200"'
    assert counted == [
        f"hublet_requests_total{{{labels.format('api-1')}}} 2.0",
        f"hublet_requests_total{{{labels.format('api-2')}}} 3.0",
    ]
    assert [line for line in text.splitlines() if line.startswith("hublet_outbox_waiting ")] == [
        "hublet_outbox_waiting 7.0"
    ]
    assert text.count("# TYPE hublet_requests_total counter") == 1


async def test_a_process_alone_has_no_label() -> None:
    text = (await a_process(1, waiting=0).render()).decode()

    assert 'hublet_requests_total{method="GET",route="/",status="200"} 1.0' in text
