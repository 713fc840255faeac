"""Model of a hub that grows: a day with so many events, on so many machines. No network is used.

An event is a write of somebody, its reactions, its notifications and one delivery of a webhook; with it
come reads. Each step of ten seconds brings what the hour brings, and every resource works off as much of
its queue as it can. The costs are what `make bench ARGS="scale"` and others measured; the model adds
nothing to them but arithmetic. It leaves out what was not measured: a network between machines, a
cache that is cold, a disk that is slow.

    python -m benchmarks.capacity_model             prints the tables of docs/scaling.md
    python -m benchmarks.capacity_model docs/images  and draws its plots
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.drawings import Line, draw_lines

DAY = 86_400
STEP = 10
# How much more than the mean comes in the busiest hour, and in the busiest minutes of that.
PEAK = 4.0
BURST = 2.0
_BURST_STEPS = 12
# Above this a resource has no room for a bad day.
_FULL = 0.9
# Whoever waits longer for a delivery, on the busiest day's worst hundredth, calls it broken.
_LATE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one event costs: seconds of a core, bytes, and commits of the database."""

    api: float
    worker: float
    database: float
    wal_bytes: float
    kept_bytes: float
    commits: float
    # What follows the write: it waits in queues where the workers fall behind.
    worker_database: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What comes with an event."""

    reads: float = 10.0
    # Of the writes, those that are commits of files.
    commits: float = 0.2
    notifications: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What somebody has bought."""

    name: str
    api_processes: int
    workers: int
    database_cores: float
    # Bytes of its log that the disk of the database takes in a second.
    wal_bytes: float
    # Commits that it takes in a second.
    commits: float
    description: str


# Milliseconds of a core of the node and of the database, and bytes of the database's log; docs/scaling.md
# says how each was measured.
READ_API, READ_DATABASE = 1.82, 0.32
WRITE_API, WRITE_DATABASE, WRITE_WAL = 5.2, 2.0, 1_950
COMMIT_API, COMMIT_DATABASE, COMMIT_WAL = 22.6, 5.2, 4_900
REACTION, REACTION_DATABASE, REACTION_WAL = 0.80, 0.88, 3_400
NOTIFICATION, NOTIFICATION_DATABASE, NOTIFICATION_WAL = 0.67, 1.38, 3_300
DELIVERY, DELIVERY_DATABASE, DELIVERY_WAL = 0.32, 0.23, 2_650
KEPT_BYTES, KEPT_PER_NOTIFICATION = 1_200, 150
# Commits of the database: the write itself; what follows is gathered.
COMMITS = 1.0 + 1 / 20 + 1 / 10 + 1 / 50
COMMITS_GATHERED, COMMITS_WITH_NOTIFY = 8_000.0, 1_300.0


def costs_of(mix: Mix) -> Costs:
    write = WRITE_API * (1 - mix.commits) + COMMIT_API * mix.commits
    write_database = WRITE_DATABASE * (1 - mix.commits) + COMMIT_DATABASE * mix.commits
    write_wal = WRITE_WAL * (1 - mix.commits) + COMMIT_WAL * mix.commits
    told = mix.notifications
    worker_database = REACTION_DATABASE + DELIVERY_DATABASE + told * NOTIFICATION_DATABASE
    return Costs(
        api=(write + mix.reads * READ_API) / 1000,
        worker=(REACTION + DELIVERY + told * NOTIFICATION) / 1000,
        database=(write_database + mix.reads * READ_DATABASE) / 1000,
        worker_database=worker_database / 1000,
        wal_bytes=write_wal + REACTION_WAL + DELIVERY_WAL + told * NOTIFICATION_WAL,
        kept_bytes=KEPT_BYTES + told * KEPT_PER_NOTIFICATION,
        commits=COMMITS,
    )


PLANS = (
    Plan(
        name="one machine, SQLite",
        api_processes=1,
        workers=1,
        database_cores=1,
        wal_bytes=50e6,
        # One writer; commits of the worker and of requests take turns.
        commits=1_500,
        description="2 cores, 4 GB, 50 GB of SSD; `hublet serve` and nothing else",
    ),
    Plan(
        name="one machine, PostgreSQL",
        api_processes=2,
        workers=1,
        database_cores=2,
        wal_bytes=100e6,
        commits=COMMITS_GATHERED,
        description="4 cores, 16 GB, 500 GB of NVMe; two API processes, one worker",
    ),
    Plan(
        name="small cluster",
        api_processes=24,
        workers=4,
        database_cores=12,
        wal_bytes=200e6,
        commits=COMMITS_GATHERED,
        description="PostgreSQL with 12 cores, 64 GB and 1 TB of NVMe; three machines of 8 cores for the "
        "API, one of 4 for workers; a bucket",
    ),
    Plan(
        name="large cluster",
        api_processes=224,
        workers=32,
        database_cores=96,
        wal_bytes=500e6,
        commits=COMMITS_GATHERED,
        description="PostgreSQL with 96 cores, 384 GB and 8 TB of NVMe, a replica; 28 machines of 8 cores for the "
        "API, four of 8 for workers; a bucket",
    ),
)


def arrivals(events: float, *, seed: int = 1) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return how many events come in each step of a day: a quiet night, a busy hour, bursts, chance."""
    chance = np.random.default_rng(seed)
    hours = np.arange(0, DAY, STEP) / 3600
    shape = (
        0.35
        + np.exp(-(((hours - 15) / 2.2) ** 2)) * 1.0
        + 0.5 * np.exp(-(((hours - 10) / 2.5) ** 2))
    )
    shape /= shape.mean()
    # The hour of the peak has so much more than the mean.
    shape = 1 + (shape - 1) * (PEAK - 1) / (shape.max() - 1)
    shape = np.maximum(shape, 0.05)
    shape /= shape.mean()
    for start in chance.integers(0, len(shape) - _BURST_STEPS, 24):
        shape[start : start + _BURST_STEPS] *= BURST
    return chance.poisson(shape / shape.mean() * events * STEP / DAY).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a day was like."""

    # Of each resource, how busy it was in the busiest five minutes; more than 1: it fell behind.
    busy: Mapping[str, float]
    # Seconds from the write to its delivery, for the worst hundredth of the events.
    late_seconds: float
    # Of each step: events that came, and seconds that those which came then waited.
    came: Sequence[float]
    waited: Sequence[float]

    @property
    def bottleneck(self) -> str:
        return max(self.busy, key=lambda name: self.busy[name])

    @property
    def holds(self) -> bool:
        return self.late_seconds <= _LATE_SECONDS and max(self.busy.values()) <= 1


def simulate(plan: Plan, events: float, mix: Mix | None = None) -> Outcome:
    costs = costs_of(mix or Mix())
    came = arrivals(events)
    # Of a second of each resource, what one event takes of it before it is written, and after that.
    writing = {
        "API": costs.api / plan.api_processes,
        "database": costs.database / plan.database_cores,
        "commits": costs.commits / plan.commits,
        "log of the database": costs.wal_bytes / plan.wal_bytes,
    }
    following = {
        "workers": costs.worker / plan.workers,
        "database": (costs.database + costs.worker_database) / plan.database_cores,
    }
    per_step = {name: STEP / cost for name, cost in (writing | following).items()}
    front = min(STEP / cost for cost in writing.values())
    back = min(STEP / cost for cost in following.values())
    unwritten, undelivered = 0.0, 0.0
    waited = np.zeros(len(came))
    for at, new in enumerate(came):
        unwritten += new
        written = min(unwritten, front)
        unwritten -= written
        undelivered += written
        undelivered -= min(undelivered, back)
        waited[at] = unwritten / front * STEP + undelivered / back * STEP
    busiest = _busiest(came, steps=300 // STEP)
    ordered = np.argsort(waited)
    reached = np.cumsum(came[ordered]) >= 0.99 * came.sum()
    return Outcome(
        busy={name: busiest / capacity for name, capacity in per_step.items()},
        late_seconds=float(waited[ordered][np.argmax(reached)]),
        came=came.tolist(),
        waited=waited.tolist(),
    )


def _busiest(came: "np.ndarray[tuple[int], np.dtype[np.float64]]", *, steps: int) -> float:
    return float(np.convolve(came, np.ones(steps) / steps, "valid").max())


def saturation(plan: Plan) -> tuple[float, str]:
    """Return how many events a day a plan holds, and what is full then."""
    low, high = 1e3, 1e10
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        if simulate(plan, middle).holds:
            low = middle
        else:
            high = middle
    return low, simulate(plan, low).bottleneck


def rounded(number: float) -> str:
    """Return a number as powers of ten are written, with two digits that mean something."""
    exponent = math.floor(math.log10(number))
    digits = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number / 10**exponent:.1f} × 10{digits}"  # noqa: RUF001 - so it is written


def tables() -> str:
    """Return the tables of docs/scaling.md."""
    lines = ["| plan | holds, events a day | full first | what it is |", "|---|---|---|---|"]
    for plan in PLANS:
        most, full = saturation(plan)
        lines.append(f"| {plan.name} | {rounded(most)} | {full} | {plan.description} |")
    lines += [
        "",
        "| events a day | the least plan | busiest | written to the log | kept of a day |",
        "|---|---|---|---|---|",
    ]
    costs = costs_of(Mix())
    for exponent in (5, 6, 7, 8):
        events = 10.0**exponent
        plan = next(each for each in PLANS if max(simulate(each, events).busy.values()) <= _FULL)
        outcome = simulate(plan, events)
        name = outcome.bottleneck
        lines.append(
            f"| {rounded(events)} | {plan.name} | {name}, {outcome.busy[name]:.0%} | "
            f"{_bytes(costs.wal_bytes * events)} a day | {_bytes(costs.kept_bytes * events)} |"
        )
    return "\n".join(lines) + "\n"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def draw(folder: Path) -> None:
    """Draw the plots of docs/scaling.md."""
    rates = np.logspace(5, 9, 33)
    saturated = []
    for plan in PLANS:
        busy = [min(max(simulate(plan, rate).busy.values()), 1.6) for rate in rates]
        saturated.append(Line(label=plan.name, points=list(zip(rates.tolist(), busy, strict=True))))
    (folder / "scaling-plans.svg").write_text(
        draw_lines(
            "How busy the busiest resource is in the busiest five minutes of a day",
            saturated,
            x="events a day",
            y="share of what it can do",
            logarithmic_x=True,
            limit=1.0,
        ),
        encoding="utf-8",
    )
    large, events = PLANS[-1], 1e8
    with_notify = replace(large, commits=COMMITS_WITH_NOTIFY)
    days = []
    for plan, label in ((large, "NOTIFY gathered"), (with_notify, "a NOTIFY in every commit")):
        waited = simulate(plan, events).waited
        days.append(
            Line(
                label=label,
                points=[(at * STEP / 3600, waited[at] / 60) for at in range(0, len(waited), 30)],
            )
        )
    (folder / "scaling-day.svg").write_text(
        draw_lines(
            "A day with 100 million events in the large cluster: minutes until a delivery",
            days,
            x="hour",
            y="minutes",
        ),
        encoding="utf-8",
    )


def main(arguments: Sequence[str]) -> None:
    print(tables())
    if arguments:
        draw(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
