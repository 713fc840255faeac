"""Spool: keeps deliveries that were answered with 202 and works them off, oldest first."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from hublet.receiver.environment import new_id, now
from hublet.receiver.requests import ReceivedRequest
from hublet.receiver.spool_store import WAITS, SpooledDelivery, SpoolStore

log = logging.getLogger("hublet.receiver")

_STOP_SECONDS = 10.0

# Does the work of a delivery, and tells whether that went well.
Work = Callable[[SpooledDelivery], Awaitable[bool]]


class Spool:
    def __init__(self, path: Path, work: Work) -> None:
        self._path = path
        self._work = work
        self._store: SpoolStore | None = None
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._stopping = False
        # Whether a handler is at work, or a delivery waits to be tried, at once or later.
        self.is_busy = False

    async def start(self) -> None:
        """Open the file and go on with what is in it; does nothing when that was done."""
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            return
        self._woken, self._stopping = asyncio.Event(), False
        # It takes a moment only, and two first requests must not both open the file.
        self._store = self._store or SpoolStore(self._path)
        self._task = asyncio.create_task(self._run(self._store))

    async def stop(self) -> None:
        """Let the delivery in hand end, if it does so soon; another process may go on after this."""
        task, store = self._task, self._store
        if task is None or store is None:
            return
        self._stopping = True
        self._woken.set()
        await asyncio.wait({task}, timeout=_STOP_SECONDS)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        self._task = self._store = None
        await asyncio.to_thread(store.close)

    async def put(self, delivery: SpooledDelivery) -> bool:
        """Return when it is on the disk, with whether it is new."""
        await self.start()
        assert self._store is not None  # noqa: S101 - just opened.
        is_new = await asyncio.to_thread(self._store.add, delivery, now=now())
        if is_new:
            self.is_busy = True
            self._woken.set()
        return is_new

    async def _run(self, store: SpoolStore) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                taken = await asyncio.to_thread(store.take, now=now())
                if taken is None:
                    await self._rest(store)
                else:
                    self.is_busy = True
                    await self._try(store, taken)
            except Exception:
                log.exception("The spool could not be worked from; the next try is in a moment.")
                await asyncio.sleep(WAITS[0])

    async def _rest(self, store: SpoolStore) -> None:
        """Wait for the next delivery, or until one is due again."""
        due_at = await asyncio.to_thread(store.next_due)
        self.is_busy = due_at is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due_at is None else max(0.0, due_at - now())):
                await self._woken.wait()

    async def _try(self, store: SpoolStore, taken: SpooledDelivery) -> None:
        if await self._work(taken):
            await asyncio.to_thread(store.finish, taken.number, now=now())
        elif taken.attempts > len(WAITS):
            await asyncio.to_thread(store.give_up, taken.number, now=now())
            log.error(
                "The delivery %s to %s failed %d times and is given up; the hub can replay it.",
                taken.delivery_id,
                taken.path,
                taken.attempts,
            )
        else:
            await asyncio.to_thread(store.postpone, taken, now=now())


# A disk is read by others than the one who was trusted with these.
_SECRET_HEADERS = {"x-webhook-secret", "webhook-signature", "authorization", "cookie"}


def to_spooled(received: ReceivedRequest) -> SpooledDelivery:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in received.scope["headers"]
    ]
    # Without an id there is no way to know it again; each is one of its own then.
    delivery_id = next((value for name, value in headers if name == "webhook-id"), None)
    return SpooledDelivery(
        path=received.path,
        delivery_id=delivery_id or new_id(),
        query=received.scope["query_string"],
        headers=[(name, value) for name, value in headers if name not in _SECRET_HEADERS],
        body=received.body,
    )


def from_spooled(spooled: SpooledDelivery) -> ReceivedRequest:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in spooled.headers]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": spooled.path,
        "raw_path": spooled.path.encode(),
        "root_path": "",
        "query_string": spooled.query,
        "headers": headers,
        "client": None,
        "server": None,
    }
    return ReceivedRequest(path=spooled.path, scope=scope, body=spooled.body)
