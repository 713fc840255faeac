"""Spool: a queue on disk of deliveries that were answered with 202, handled oldest first."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from starlette.types import Scope

from hublet.receiver.environment import new_id, now
from hublet.receiver.spool_store import WAITS, SpooledDelivery, SpoolStore

log = logging.getLogger("hublet.receiver")

_STOP_SECONDS = 10.0

# Handles a delivery, and returns whether that succeeded.
Work = Callable[[SpooledDelivery], Awaitable[bool]]


class Spool:
    def __init__(self, path: Path, work: Work) -> None:
        self._path = path
        self._work = work
        self._store: SpoolStore | None = None
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._stopping = False
        # Whether a handler runs, or a delivery waits for an attempt, now or later.
        self.is_busy = False

    async def start(self) -> None:
        """Open the file and handle what is in it; do nothing if that was done before."""
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            return
        self._woken, self._stopping = asyncio.Event(), False
        # Opened without a thread: that is quick, and two first requests must not both do it.
        self._store = self._store or SpoolStore(self._path)
        self._task = asyncio.create_task(self._run(self._store))

    async def stop(self) -> None:
        """Wait for the running handler for a short while, then close the file for other processes."""
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
        """Write a delivery to the disk; return whether it is new."""
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
                delivery = await asyncio.to_thread(store.claim, now=now())
                if delivery is None:
                    await self._wait_for_work(store)
                else:
                    self.is_busy = True
                    await self._attempt(store, delivery)
            except Exception:
                log.exception("The spool could not be worked from; the next try is in a moment.")
                await asyncio.sleep(WAITS[0])

    async def _wait_for_work(self, store: SpoolStore) -> None:
        """Wait for a new delivery, or until one is due again."""
        due_at = await asyncio.to_thread(store.next_due)
        self.is_busy = due_at is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due_at is None else max(0.0, due_at - now())):
                await self._woken.wait()

    async def _attempt(self, store: SpoolStore, delivery: SpooledDelivery) -> None:
        if await self._work(delivery):
            await asyncio.to_thread(store.finish, delivery.number, now=now())
        elif delivery.attempts > len(WAITS):
            await asyncio.to_thread(store.give_up, delivery.number, now=now())
            log.error(
                "The delivery %s to %s failed %d times and is given up; the hub can replay it.",
                delivery.delivery_id,
                delivery.path,
                delivery.attempts,
            )
        else:
            await asyncio.to_thread(store.postpone, delivery, now=now())


# Others than the receiver may read its disk.
_SECRET_HEADERS = {"x-webhook-secret", "webhook-signature", "authorization", "cookie"}


def spooled_delivery(path: str, scope: Scope, body: bytes) -> SpooledDelivery:
    """Return a request as the spool keeps it, without its secrets."""
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    # A delivery without an id cannot be recognized as a duplicate, so it gets an id of its own.
    delivery_id = next((value for name, value in headers if name == "webhook-id"), None)
    return SpooledDelivery(
        path=path,
        delivery_id=delivery_id or new_id(),
        query=scope["query_string"],
        headers=[(name, value) for name, value in headers if name not in _SECRET_HEADERS],
        body=body,
    )


def spooled_scope(delivery: SpooledDelivery) -> Scope:
    """Return the ASGI scope of the request that a delivery came with."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": delivery.path,
        "raw_path": delivery.path.encode(),
        "root_path": "",
        "query_string": delivery.query,
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in delivery.headers
        ],
        "client": None,
        "server": None,
    }
