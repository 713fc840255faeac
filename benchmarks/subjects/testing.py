"""The pytest fixture: how long the first test waits for its hub, and every other one."""

import time
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.figures import Goal, Row
from benchmarks.workbench import Workbench
from hublet.testing import Hub, HubProcess, Port, running_hub

_TIMES = 5
_RESETS = 20
# What pytest takes to import a conftest.py with the public client in it, and to collect.
_HEAD_START_SECONDS = 2.0
_START = Goal(floor=2.0, aim=1.0, more_is_better=False, of="ours")
_FIRST = Goal(floor=1.0, aim=0.5, more_is_better=False, of="ours")
_RESET = Goal(floor=50, aim=25, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Seconds to a hub that serves; milliseconds to one that has seen nothing."""
    alone = [_seconds_to_start(0) for _ in range(_TIMES)]
    yield _row("fixture: from nothing", "s", alone, _START)
    beside = [_seconds_to_start(_HEAD_START_SECONDS) for _ in range(_TIMES)]
    note = f"the process has {_HEAD_START_SECONDS:g} s while pytest collects"
    yield _row("fixture: what the first test waits", "s", beside, _FIRST, note)
    for engine in ("SQLite", "PostgreSQL"):
        with running_hub(database_url=bench.site(engine).database_url) as hub:
            times = [_millis_to_reset(hub) for _ in range(_RESETS)]
        yield _row(f"fixture: reset, {engine}", "ms", times, _RESET)


def _row(subject: str, unit: str, times: list[float], goal: Goal, note: str = "") -> Row:
    return Row(subject=subject, unit=unit, ours=median(times), goal=goal, note=note)


def _seconds_to_start(head_start: float) -> float:
    begun = time.perf_counter()
    process = HubProcess(Port())
    try:
        time.sleep(head_start)
        return _seconds(lambda: process.start({})) if head_start else _since(begun, process)
    finally:
        process.stop()


def _since(begun: float, process: HubProcess) -> float:
    process.start({})
    return time.perf_counter() - begun


def _millis_to_reset(hub: Hub) -> float:
    """Reset a hub that somebody has used a little."""
    hub.organization("acme", owner=hub.user("ada"))
    return _seconds(hub.reset) * 1000


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
