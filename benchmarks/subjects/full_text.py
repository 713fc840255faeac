"""Full text over comments of discussions: how long it takes to build, how large it is, how fast it answers."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from benchmarks.discussions import add_users
from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, opened
from benchmarks.latencies import percentile_of
from benchmarks.machine import tied_to
from benchmarks.search_scene import vocabulary_of
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.search import full_text, text_index
from hublet.search.records import IndexSource, TextQuery

TEXTS = 200_000
FEW = 10_000
_REPOS = 200
_WORDS = 60
_AT_ONCE = 500
_QUERIES = 60
_FAST = Goal(floor=100, aim=30, more_is_better=False, of="ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """Seconds to build the index, its bytes, and the seconds of queries by what they ask."""

    build: float
    size: int
    times: dict[str, list[float]]


def measure(bench: Workbench) -> Iterator[Row]:
    """Full text: rare and common words, alone and together; p99, and against a tenth of the texts."""
    texts = max(round(TEXTS * bench.share), FEW)
    for engine in ENGINES:
        with tied_to(bench.cores.server):
            small = run_loop(_figures(bench.site(engine).settings(), texts=texts // 10))
            large = run_loop(_figures(bench.site(engine).settings(), texts=texts))
        for name, times in large.times.items():
            ours, other = (percentile_of(each, 0.99) for each in (times, small.times[name]))
            yield Row(
                subject=f"full text: {name}, {engine}, p99",
                unit="ms",
                ours=ours,
                other=other,
                other_is=f"{texts // 10:,} texts",
                ratios=(ours / other,),
                goal=_FAST,
                note=f"{texts:,} texts; p50 {percentile_of(times, 0.5):.2f} ms; built in "
                f"{large.build:.0f} s, {large.size / 2**20:.0f} MiB",
            )


async def _figures(settings: Settings, *, texts: int) -> _Figures:
    async with opened(settings) as database:
        vocabulary = vocabulary_of(random.Random(1))
        before = await _size(database)
        ids = await _add_comments(database, vocabulary, texts)
        added = await _size(database)
        started = time.perf_counter()
        for at in range(0, len(ids), _AT_ONCE):
            await text_index.refresh(database, IndexSource.comment, ids[at : at + _AT_ONCE])
        build = time.perf_counter() - started
        async with database.transaction() as conn:
            await conn.apply("ANALYZE;")
        times = {
            name: [await _time(database, text) for text in asked]
            for name, asked in _questions(vocabulary).items()
        }
        return _Figures(build=build, size=await _size(database) - max(added, before), times=times)


async def _time(database: Database, text: str) -> float:
    started = time.perf_counter()
    await full_text.search_texts(database, None, TextQuery(text=text))
    return time.perf_counter() - started


def _questions(vocabulary: Sequence[str]) -> dict[str, list[str]]:
    chance = random.Random(3)

    def some(*pools: Sequence[str]) -> list[str]:
        return [" ".join(chance.choice(pool) for pool in pools) for _ in range(_QUERIES)]

    common, usual, rare = vocabulary[:50], vocabulary[200:2000], vocabulary[5000:]
    return {
        "a common word": some(common),
        "a word": some(usual),
        "a rare word": some(rare),
        "two common words": some(common, common),
        "a common and a rare word": some(common, rare),
        "three words": some(common, common, usual),
    }


async def _size(database: Database) -> int:
    sql = {
        "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        "postgresql": "SELECT pg_database_size(current_database())",
    }
    async with database.read() as conn:
        size: int = await conn.fetch_value(sql[database.kind])
    return size


async def _add_comments(database: Database, vocabulary: list[str], texts: int) -> list[str]:
    """Add discussions of public models whose comments have words by Zipf's law; return their ids."""
    chance = random.Random(texts)
    zipf = list(accumulate(1 / (rank + 5) for rank in range(len(vocabulary))))
    [author] = await add_users(database, "maker", 1)
    repos = [new_object_id() for _ in range(_REPOS)]
    threads = [new_object_id() for _ in range(_REPOS)]
    async with database.transaction() as conn:
        await _add_threads(conn, author, repos, threads)
    ids = []
    for start in range(0, texts, 10_000):
        rows = []
        for _ in range(min(10_000, texts - start)):
            words = chance.choices(vocabulary, cum_weights=zipf, k=_WORDS)
            rows.append(
                (new_object_id(), chance.choice(threads), author, " ".join(words), micros())
            )
        ids += [row[0] for row in rows]
        async with database.transaction() as conn:
            await conn.execute_many(
                """
                INSERT INTO comments (id, thread_id, author_id, raw, created_at)
                VALUES ($1, $2, $3, $4, $5)
                """,
                rows,
            )
    return ids


async def _add_threads(
    conn: Connection, author: str, repos: Sequence[str], threads: Sequence[str]
) -> None:
    now = micros()
    await conn.execute_many(
        """
        INSERT INTO repos
            (id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at,
             updated_at)
        VALUES ($1, 'model', $2, $1, $1, 'public', $2, '[]', $3, $3)
        """,
        [(repo_id, author, now) for repo_id in repos],
    )
    await conn.execute_many(
        """
        INSERT INTO threads (id, kind, title, author_id, repo_id, number, status, created_at,
            updated_at)
        VALUES ($1, 'discussion', 'About it', $2, $3, 1, 'open', $4, $4)
        """,
        [(thread, author, repo, now) for thread, repo in zip(threads, repos, strict=True)],
    )
