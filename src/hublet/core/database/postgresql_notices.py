"""Notices between processes: one connection that listens, and gathers what this process commits.

NOTIFY inside a commit makes all commits of the server queue for one lock (decision 0062). So it is sent
after the commit, for many commits at once. A process that dies in between has told nobody: whoever waits
for a channel also looks by itself now and then.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import asyncpg

from hublet.core.database.engine import Database, NoticeCounts
from hublet.core.database.postgresql_pool import quote, terminate
from hublet.core.logs import get_logger

log = get_logger("database")

NOTIFY_CHANNEL = "hublet"
# A channel is announced at most once in this time, by each process.
GATHER_SECONDS = 0.005

_RECONNECT_SECONDS = 0.5
# A server that vanished without a word is noticed after this long.
_SILENCE_SECONDS = 60.0


class Notices:
    """Wakes the database's subscribers, and those of the other processes.

    What cannot be sent waits for the next connection, which begins with every channel that was ever
    announced here: nobody knows what the last one still sent.
    """

    def __init__(self, database: Database, url: str, *, patience: float) -> None:
        self._database = database
        self._counts = database.notices or NoticeCounts()
        self._url = url
        self._patience = patience
        self._announced: set[str] = set()
        self._waiting: set[str] = set()
        # Set when there is something to send, and when the connection is lost.
        self._due = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="postgresql-notices")

    def announce(self, channels: Collection[str]) -> None:
        """Notify the other processes soon."""
        if not channels:
            return
        self._counts.announced += 1
        self._waiting.update(channels)
        self._due.set()

    async def stop(self) -> set[str]:
        """Stop, and return the channels that are still to be announced."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        return self._waiting

    async def _run(self) -> None:
        while True:
            try:
                # Its default is a whole number, from which the type is guessed.
                raw = await asyncpg.connect(
                    self._url,
                    timeout=self._patience,  # pyright: ignore[reportArgumentType]
                    server_settings={"application_name": "hublet notices"},
                )
                try:
                    await self._exchange(raw)
                finally:
                    self._counts.is_connected = False
                    terminate(raw)
            except Exception as error:  # noqa: BLE001 - whatever it was, notices must come back
                log.warning("notices cannot be heard", reason=f"{type(error).__name__}: {error}")
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _exchange(self, raw: Any) -> None:
        own = raw.get_server_pid()

        def hear(_: object, sender: int, __: str, channel: str) -> None:
            # Subscribers of this process were woken at the commit.
            if sender != own:
                self._counts.heard += 1
                self._database.wake([channel])

        raw.add_termination_listener(lambda _: self._due.set())
        await raw.add_listener(NOTIFY_CHANNEL, hear)
        self._counts.is_connected = True
        # Whatever was committed while nobody listened is found by looking once.
        self._database.wake_all()
        self._waiting |= self._announced
        while not raw.is_closed():
            if self._waiting:
                await self._send(raw)
                await asyncio.sleep(GATHER_SECONDS)
            else:
                self._due.clear()
                await self._wait(raw)

    async def _wait(self, raw: Any) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE_SECONDS):
                await self._due.wait()
                return
        await raw.execute("SELECT 1", timeout=self._patience)

    async def _send(self, raw: Any) -> None:
        channels, self._waiting = self._waiting, set()
        self._announced |= channels
        try:
            await raw.execute(notify_statement(channels), timeout=self._patience)
            self._counts.sent += len(channels)
        except BaseException:
            self._waiting |= channels
            raise


def notify_statement(channels: Iterable[str]) -> str:
    return "; ".join(f"NOTIFY {NOTIFY_CHANNEL}, {quote(channel)}" for channel in sorted(channels))
