"""Another process on a database: writes the time of each wake-up of a channel to its output."""

import asyncio
import sys
import time
from dataclasses import replace

from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing

_LONG_SECONDS = 600.0


async def report_wakes(settings: Settings, channel: str) -> None:
    """The first line says that it listens; each other one is a moment in nanoseconds."""
    hub = Hub(settings=settings, keys=KeyRing.new())
    async with open_database(hub) as database:
        with database.subscribe(channel) as bell:
            while await bell.wait(timeout=_LONG_SECONDS):
                # Everybody is woken once when the connection is there.
                print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    database = replace(Settings().database, url=sys.argv[2])
    asyncio.run(report_wakes(replace(Settings(), database=database), sys.argv[1]))
