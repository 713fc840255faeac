"""A table for tests of the database itself, and short words for what they do with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import asyncpg

from hublet.core.config import Settings
from hublet.core.database import Database, Reader, Subscription
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from patience import SOON_SECONDS

# Generous, because the machine is shared; nothing here is a measurement.

_RING = KeyRing.new()


class RollBack(Exception):
    """Raised by tests that undo what they began."""


def hub_of(settings: Settings, **database: Any) -> Hub:
    """Return a hub with these settings, some of its database's changed."""
    return Hub(
        settings=replace(settings, database=replace(settings.database, **database)), keys=_RING
    )


@asynccontextmanager
async def notes_table(database: Database) -> AsyncIterator[None]:
    async with database.transaction() as conn:
        await conn.apply(
            """
            CREATE TABLE notes (
                id TEXT PRIMARY KEY,
                body TEXT,
                size BIGINT,
                raw BYTEA,
                seen BOOLEAN
            );
            """
        )
    try:
        yield
    finally:
        async with database.transaction() as conn:
            await conn.apply("DROP TABLE notes;")


async def write_note(database: Database, note_id: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO notes (id) VALUES ($1)", note_id)


async def note_ids(conn: Reader) -> list[str]:
    return [row["id"] for row in await conn.fetch_all("SELECT id FROM notes ORDER BY id")]


async def notes_of(database: Database) -> list[str]:
    async with database.read() as conn:
        return await note_ids(conn)


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds; fail when it does not hold within a generous time."""
    deadline = monotonic() + SOON_SECONDS
    while not await condition():
        assert monotonic() < deadline, "It did not come true in time."
        await asyncio.sleep(0.01)


async def wait_until_listening(database: Database) -> None:
    """Wait until notices of other processes are heard, so that what wakes later is told apart."""
    if database.kind == "postgresql":
        with database.subscribe("probe") as bell:
            raw = await asyncpg.connect(database.hub.settings.database_url)
            try:
                await wait_until(lambda: _wakes(raw, bell))
            finally:
                await raw.close()
        await asyncio.sleep(0.05)


async def _wakes(raw: Any, bell: Subscription) -> bool:
    await raw.execute("NOTIFY hublet, 'probe'")
    return await bell.wait(timeout=0.1)
