"""The search of a hub with a million repositories, against one with ten thousand."""

import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ENGINES, opened
from benchmarks.latencies import percentile_of
from benchmarks.machine import tied_to
from benchmarks.search_scene import SearchScene, load
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Database, Reader
from hublet.search import service
from hublet.search.records import SearchQuery
from hublet.tokens import service as tokens
from hublet.tokens.records import Caller, TokenRole

MANY = 1_000_000
FEW = 10_000
_QUERIES = 60
_FAST = Goal(floor=30, more_is_better=False, of="ours")
_FLAT = Goal(floor=1.5, aim=1.1, more_is_better=False, of="ratio")

Ask = Callable[[Reader, Caller, str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Seconds of each query, by the clock and by the processor."""

    wall: list[float]
    processor: list[float]


def measure(bench: Workbench) -> Iterator[Row]:
    """Quick searches and pages: beginnings, words, several words, mistyped ones; p99, and against a small hub."""
    many = max(round(MANY * bench.share), FEW)
    for engine in ENGINES:
        with tied_to(bench.cores.server):
            small = run_loop(_times(bench.site(engine).settings(), repos=FEW))
            large = run_loop(_times(bench.site(engine).settings(), repos=many))
        for name in large:
            yield from _rows(f"search: {name}, {engine}", large[name], small[name], repos=many)


def _rows(subject: str, large: _Times, small: _Times, *, repos: int) -> Iterator[Row]:
    for clock in ("wall", "processor"):
        ours, other = (percentile_of(getattr(times, clock), 0.99) for times in (large, small))
        yield Row(
            subject=f"{subject}, p99 by {'the clock' if clock == 'wall' else 'processor time'}",
            unit="ms",
            ours=ours,
            other=other,
            other_is=f"{FEW:,} repositories",
            ratios=(ours / other,),
            goal=_FAST if clock == "wall" else _FLAT,
            note=f"{repos:,} repositories; p50 {percentile_of(getattr(large, clock), 0.5):.2f} ms",
        )


async def _times(settings: Settings, *, repos: int) -> dict[str, _Times]:
    async with opened(settings) as database:
        scene = await load(database, repos=repos)
        caller = await _caller(database, scene)
        return {
            name: await _ask(database, caller, ask, questions)
            for name, (ask, questions) in _subjects(scene).items()
        }


async def _caller(database: Database, scene: SearchScene) -> Caller:
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn, user_id=scene.reader_id, name="bench", role=TokenRole.write
        )
        caller = await tokens.find_caller(conn, value)
    if caller is None:
        raise Spoiled("The token is not valid.")
    return caller


def _subjects(scene: SearchScene) -> dict[str, tuple[Ask, list[str]]]:
    chance = random.Random(3)
    common, all_words = scene.vocabulary[:300], scene.vocabulary[:5000]

    def some(make: Callable[[], str]) -> list[str]:
        return [make() for _ in range(_QUERIES)]

    def word(of: Sequence[str] = all_words) -> str:
        return chance.choice([each for each in chance.choices(of, k=9) if len(each) >= 4] or of)

    asked = {
        "one to three letters": some(lambda: word()[: chance.randint(1, 3)]),
        "beginning of five letters": some(lambda: word()[:5]),
        "long beginning": some(lambda: max((word() for _ in range(9)), key=len)[:-1]),
        "word": some(word),
        "two words": some(lambda: f"{word()} {word()}"),
        "two common words": some(lambda: f"{word(common)} {word(common)}"),
        "three words": some(lambda: f"{word(common)} {word(common)} {word()[:3]}"),
        "owner and word": some(lambda: f"maker {chance.randint(0, 50)} {word(common)}"),
        "mistyped word": some(lambda: _mistyped(chance, word())),
        "nothing": some(lambda: "zqzqzqzq"),
    }
    mixed = [each for texts in asked.values() for each in texts]
    subjects = {f"quick search, {name}": (_quick, texts) for name, texts in asked.items()}
    return {
        **subjects,
        "quick search, all of these": (_quick, mixed),
        "page, all of these": (_page, mixed),
        "suggestions, all of these": (_suggest, mixed),
    }


def _mistyped(chance: random.Random, word: str) -> str:
    at = chance.randrange(len(word))
    return word[:at] + chance.choice("etaoin") + word[at + 1 :]


async def _quick(conn: Reader, caller: Caller, text: str) -> object:
    return await service.search_kinds(conn, caller, SearchQuery(text=text, limit=10))


async def _page(conn: Reader, caller: Caller, text: str) -> object:
    return await service.search(conn, caller, SearchQuery(text=text))


async def _suggest(conn: Reader, caller: Caller, text: str) -> object:
    return await service.suggest(conn, caller, text)


async def _ask(database: Database, caller: Caller, ask: Ask, questions: list[str]) -> _Times:
    times = _Times(wall=[], processor=[])
    async with database.read() as conn:
        await ask(conn, caller, questions[0])
        for text in questions:
            wall, processor = time.perf_counter(), time.process_time()
            await ask(conn, caller, text)
            times.processor.append(time.process_time() - processor)
            times.wall.append(time.perf_counter() - wall)
    return times
