"""Hears through LISTEN what other processes commit."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from hublet.core.database.engine import Database
from hublet.core.logs import get_logger

log = get_logger("database")

CHANNEL = "hublet"

_RECONNECT_SECONDS = 0.5
# A server that vanished without a word is noticed after this long.
_SILENCE_SECONDS = 60.0


async def listen(database: Database, url: str, *, patience: float) -> None:
    """Ring the database's subscribers; come back after every loss of the connection."""
    while True:
        try:
            # Its default is a whole number, from which the type is guessed.
            raw = await asyncpg.connect(url, timeout=patience)  # pyright: ignore[reportArgumentType]
            try:
                await _relay(database, raw, patience=patience)
            finally:
                raw.terminate()
        except Exception as error:  # noqa: BLE001 - whatever it was, listening must come back
            log.warning("notices cannot be heard", reason=f"{type(error).__name__}: {error}")
        await asyncio.sleep(_RECONNECT_SECONDS)


async def _relay(database: Database, raw: Any, *, patience: float) -> None:
    lost = asyncio.Event()
    raw.add_termination_listener(lambda _: lost.set())
    await raw.add_listener(CHANNEL, lambda *notice: database.ring([notice[3]]))
    # Whatever was committed while nobody listened is found by looking once.
    database.ring_all()
    while not lost.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE_SECONDS):
                await lost.wait()
        if not lost.is_set():
            await raw.execute("SELECT 1", timeout=patience)
