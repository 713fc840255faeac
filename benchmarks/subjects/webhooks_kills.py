"""Kills at random points of a hub under load: what is lost, what comes twice, how soon it goes on."""

import asyncio
import random
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from benchmarks.comment_load import CommentLoad
from benchmarks.content import Account
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import BASE_URL, ENGINES, Engine, ServedHub, Site, opened, populate
from benchmarks.processes import COMMANDS, Child, free_port, running, wait_until_it_answers
from benchmarks.sink import Sink, sinking
from benchmarks.webhook_scene import VARIABLES, settings_of
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

KILLS = 100
ENDPOINTS = 20
_SEED = 20261115
_LONGEST_PAUSE_SECONDS = 0.5
# One kill of so many does not wait for the first delivery: it strikes during the start.
_ONE_AT_START_OF = 5
_LONGEST_START_SECONDS = 1.5
_LONGEST_SECONDS = 60.0
_NONE = Goal(floor=0, aim=0, more_is_better=False, of="ours")
# What may be in flight with one unwritten group, and what the design hopes for.
_TWICE = Goal(floor=320, aim=80, more_is_better=False, of="ours")
_RESTART = Goal(floor=1.0, aim=0.2, more_is_better=False, of="ours")


@dataclass(slots=True, kw_only=True)
class _Toll:
    deliveries: int = 0
    lost: int = 0
    twice: int = 0
    kills: int = 0
    # Seconds from the command to the first delivery, and to the first answer.
    restarts: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)


def measure(bench: Workbench) -> Iterator[Row]:
    """Deliveries lost and doubled over 100 SIGKILLs under load, and restart to first delivery."""
    kills = max(1, round(KILLS * bench.share))
    with sinking(bench.folder, endpoints=ENDPOINTS, core=bench.cores.load) as sink:
        for engine in ENGINES:
            sink.forget()
            yield from _rows(engine, _killed(bench.site(engine), sink, kills=kills))


def _rows(engine: Engine, toll: _Toll) -> Iterator[Row]:
    note = f"{toll.kills} kills of `hublet serve`, {toll.deliveries:,} deliveries, seed {_SEED}"
    subject = f"deliveries lost over kills, {engine}"
    yield Row(subject=subject, unit="", ours=toll.lost, goal=_NONE, note=note)
    yield Row(
        subject=f"deliveries sent twice for each kill, {engine}",
        unit="",
        ours=toll.twice / toll.kills,
        goal=_TWICE,
    )
    yield Row(
        subject=f"restart to first delivery, {engine}",
        unit="s",
        ours=median(toll.restarts),
        goal=_RESTART,
        note=f"from the command; {max(toll.restarts):.2f} s at the most; the first answer to a "
        f"request came after {median(toll.answers):.2f} s",
    )


def _killed(site: Site, sink: Sink, *, kills: int) -> _Toll:
    token = run_loop(populate(settings_of(site)))
    chance = random.Random(_SEED)
    toll, port = _Toll(kills=kills), free_port()
    with _hub(site, port) as child:
        wait_until_it_answers(child, port, "/healthz")
        load = CommentLoad(Account(hub=ServedHub(child=child, port=port), token=token))
        load.prepare(sink.urls)
    with load:
        for number in range(kills):
            with _hub(site, port) as child:
                if (number + 1) % _ONE_AT_START_OF:
                    _wait_for_a_delivery(child, sink, load, toll)
                    time.sleep(chance.uniform(0, _LONGEST_PAUSE_SECONDS))
                else:
                    time.sleep(chance.uniform(0, _LONGEST_START_SECONDS))
                child.process.kill()
                child.process.wait()
    with _hub(site, port):
        run_loop(_count(site, sink, load.acknowledged, toll))
    return toll


@contextmanager
def _hub(site: Site, port: int) -> Iterator[Child]:
    command = [str(COMMANDS / "hublet"), "serve", "--port", str(port), "--base-url", BASE_URL]
    with running([*command, *site.flags], output=site.folder / "hub.log", variables=VARIABLES) as c:
        yield c


def _wait_for_a_delivery(child: Child, sink: Sink, load: CommentLoad, toll: _Toll) -> None:
    before, start = sink.count(), time.monotonic()
    while sink.count() == before or (answered := load.first_answer_since(start)) is None:
        if child.process.poll() is not None:
            raise Spoiled(f"{child.name} ended and said: {child.last_words()}")
        if time.monotonic() - start > _LONGEST_SECONDS:
            raise Spoiled(f"Nothing was delivered within {_LONGEST_SECONDS:.0f} seconds.")
        time.sleep(0.005)
    toll.restarts.append(sink.arrivals(after=before)[0].nanos / 1e9 - start)
    toll.answers.append(answered - start)


async def _count(site: Site, sink: Sink, acknowledged: set[str], toll: _Toll) -> None:
    """Wait until everything has arrived, or does not any more, and count what is missing."""
    async with opened(settings_of(site)) as database:
        deadline = time.monotonic() + _LONGEST_SECONDS
        while True:
            async with database.read() as conn:
                rows = await conn.fetch_all("SELECT id, state FROM webhook_deliveries")
                told = await conn.fetch_all("SELECT payload FROM webhook_events")
            is_over = all(row["state"] == "delivered" for row in rows)
            if is_over or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
    arrived = [each.id for each in sink.arrivals()]
    payloads = "\n".join(row["payload"] for row in told)
    toll.deliveries = len(rows)
    toll.lost = count_lost({row["id"]: row["state"] for row in rows}, arrived)
    toll.lost += ENDPOINTS * sum(f'"{each}"' not in payloads for each in acknowledged)
    toll.twice = len(arrived) - len(set(arrived))


def count_lost(states: Mapping[str, str], arrived: Collection[str]) -> int:
    """Count deliveries that nobody received, or of which the hub does not know that they were."""
    seen = set(arrived)
    return sum(key not in seen or state != "delivered" for key, state in states.items())
