"""Curves of growth: topics with sizes and operations, what an operation costs, and the verdict."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import ClassVar

from benchmarks.figures import Goal, Row
from benchmarks.growth.local_app import LocalApp
from benchmarks.hubs import Engine
from benchmarks.process_trees import tree_of

_WARM_UPS = 2
MOST_SAMPLES = 15
_LEAST_SAMPLES = 5
# Of one operation at one size; what grows with the size would take the whole run otherwise.
_LONGEST_SECONDS = 2.0

Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that is done every day. What happens before and after it is not measured."""

    run: Call
    before: Call | None = None
    after: Call | None = None


class Topic(ABC):
    """One thing that a hub has more and more of, and what is done with it."""

    name: ClassVar[str]
    # What is counted, from the smallest to the largest.
    sizes: ClassVar[Sequence[int]]

    def __init__(self, app: LocalApp) -> None:
        self.app = app

    @abstractmethod
    async def grow(self, before: int, size: int) -> None:
        """Bring a hub that has so many to the next size; before the first it has none."""

    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """Return what is done at the size that there is now, by name."""

    def getting(self, target: str) -> Operation:
        return Operation(run=lambda: self.app.ask("GET", target))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCost:
    """Milliseconds of one operation: of processors, the database's too, and by the clock."""

    processor: float
    wall: float


@dataclass(slots=True, kw_only=True)
class GrowthCurve:
    """What one operation costs at each size."""

    topic: str
    operation: str
    engine: Engine
    costs: dict[int, OperationCost] = field(default_factory=dict)

    @property
    def growth(self) -> float:
        """Return the cost at the largest size as a multiple of that at the smallest."""
        smallest, largest = min(self.costs), max(self.costs)
        return self.costs[largest].processor / self.costs[smallest].processor

    @property
    def limit(self) -> float:
        """Return the growth of what costs the logarithm of the size."""
        return math.log(max(self.costs)) / math.log(min(self.costs))

    @property
    def goal(self) -> Goal:
        return Goal(aim=round(self.limit, 2), more_is_better=False, of="ratio")

    def row(self) -> Row:
        smallest, largest = min(self.costs), max(self.costs)
        at_most, at_least = self.costs[largest], self.costs[smallest]
        return Row(
            subject=f"{self.topic}: {self.operation}, {largest:,}, {self.engine}",
            unit="ms",
            ours=at_most.processor,
            other=at_least.processor,
            other_is=f"with {smallest:,}",
            ratios=(self.growth,),
            goal=self.goal,
            note=f"processor time; by the clock {at_most.wall:.2f} and {at_least.wall:.2f} ms",
        )


async def cost_of(app: LocalApp, operation: Operation) -> OperationCost:
    """Do it again and again, and return the medians."""
    processor, wall = list[float](), list[float]()
    deadline = time.monotonic() + _LONGEST_SECONDS
    for number in range(_WARM_UPS + MOST_SAMPLES):
        if number > _LEAST_SAMPLES and time.monotonic() > deadline:
            break
        if operation.before is not None:
            await operation.before()
        spent, start = _processor_seconds(app), time.perf_counter()
        await operation.run()
        wall.append(time.perf_counter() - start)
        processor.append(_processor_seconds(app) - spent)
        if operation.after is not None:
            await operation.after()
    processor, wall = processor[_WARM_UPS:], wall[_WARM_UPS:]
    return OperationCost(processor=median(processor) * 1000, wall=median(wall) * 1000)


def _processor_seconds(app: LocalApp) -> float:
    """Return what this process and the processes of the database have taken so far."""
    return time.process_time() + sum(map(_scheduled_seconds, _server_processes(app)))


def _server_processes(app: LocalApp) -> Iterator[int]:
    if app.postmaster is not None:
        yield from tree_of(app.postmaster)


def _scheduled_seconds(process_id: int) -> float:
    # To the nanosecond; what `/proc/PID/stat` tells is in steps of ten milliseconds.
    with suppress(OSError):
        return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def sizes_of(topic: type[Topic], share: float) -> list[int]:
    """Return the sizes, or as many smaller ones from the same beginning: a decade at least."""
    if share >= 1:
        return list(topic.sizes)
    smallest, steps = topic.sizes[0], len(topic.sizes) - 1
    factor = max(10.0, topic.sizes[-1] * share / smallest) ** (1 / steps)
    return [round(smallest * factor**step) for step in range(steps + 1)]
