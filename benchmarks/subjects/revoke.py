"""`POST /api/credentials/revoke` with one and with a thousand values."""

from collections.abc import Iterator

import msgspec

from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, ServedHub, serving
from benchmarks.latencies import percentile
from benchmarks.load import LoadPlan
from benchmarks.rounds import apply_load, request_bytes
from benchmarks.workbench import Workbench
from hublet.tokens.format import TokenKind, new_credential

_PATH = "/api/credentials/revoke"
_ITEMS = (1, 1000)
_REQUESTS = 500
_WARM_UP_REQUESTS = 20
_GOAL = Goal(aim=30, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Latency of one caller that reports leaked credentials, the worker busy beside it."""
    for engine in ENGINES:
        with serving(bench.site(engine), core=bench.cores.server) as hub:
            for items in _ITEMS:
                yield _row(bench, hub, subject=f"revoke {items:,}, {engine}, p99", items=items)


def _row(bench: Workbench, hub: ServedHub, *, subject: str, items: int) -> Row:
    values = [new_credential("hf_", TokenKind.access) for _ in range(items)]
    request = request_bytes("POST", _PATH, body=msgspec.json.encode({"credentials": values}))

    def load(requests: int) -> dict[int, int]:
        plan = LoadPlan(
            port=hub.port,
            request=request,
            connections=1,
            seconds=bench.seconds * bench.rounds,
            most=requests,
            core=bench.cores.load,
        )
        return apply_load(plan, name=subject).latencies

    load(_WARM_UP_REQUESTS)
    latencies = load(_REQUESTS)
    return Row(
        subject=subject,
        unit="ms",
        ours=percentile(latencies, 0.99),
        goal=_GOAL if items == max(_ITEMS) else None,
        note=f"p50 {percentile(latencies, 0.5):.1f} ms of {sum(latencies.values())} requests",
    )
