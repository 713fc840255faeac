"""A receiver of webhooks beside the test, in a thread of its own."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from outgoing_servers import Request
from patience import SOON_SECONDS
from webhooks.receivers import answer, receiving


class Inbox:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.arrived: Counter[str] = Counter()
        self.url = ""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()

    def run(self) -> None:
        self._loop.run_until_complete(self._receive())
        self._loop.close()

    async def _receive(self) -> None:
        def note(request: Request) -> bytes:
            self.arrived[request.headers["webhook-id"]] += 1
            return answer(200)

        async with receiving(note) as receiver:
            self.url = receiver.url
            self._ready.set()
            await self._stop.wait()

    def wait_until_ready(self) -> None:
        assert self._ready.wait(SOON_SECONDS)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def inbox() -> Iterator[Inbox]:
    box = Inbox()
    thread = threading.Thread(target=box.run)
    thread.start()
    box.wait_until_ready()
    try:
        yield box
    finally:
        box.stop()
        thread.join(SOON_SECONDS)
