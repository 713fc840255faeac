"""What PostgreSQL spends on something: processor time of all its processes, and bytes of its log."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from benchmarks.process_trees import cpu_seconds_of_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    cpu_seconds: float
    wal_bytes: int


@contextmanager
def measured_costs(url: str | None) -> Iterator[Callable[[], Costs]]:
    """Yield what tells, after the body, what the server has spent in it."""
    assert url is not None
    spent: list[Costs] = []
    before = _now(url)
    yield lambda: spent[0]
    after = _now(url)
    spent.append(
        Costs(
            cpu_seconds=after.cpu_seconds - before.cpu_seconds,
            wal_bytes=after.wal_bytes - before.wal_bytes,
        )
    )


def _now(url: str) -> Costs:
    # In a thread of its own: a loop may run in this one.
    with ThreadPoolExecutor(1) as thread:
        folder, written = thread.submit(lambda: asyncio.run(_ask(url))).result()
    # The first line is the id of the process that started all others.
    first = int(Path(folder, "postmaster.pid").read_text().splitlines()[0])
    return Costs(cpu_seconds=cpu_seconds_of_tree(first), wal_bytes=written)


async def _ask(url: str) -> tuple[str, int]:
    """Return the folder of the server, and how many bytes it has written to its log so far."""
    raw = await asyncpg.connect(url)
    try:
        folder, written = await raw.fetchrow(
            "SELECT current_setting('data_directory'), pg_current_wal_lsn() - '0/0'::pg_lsn"
        )
    finally:
        await raw.close()
    return folder, int(written)
