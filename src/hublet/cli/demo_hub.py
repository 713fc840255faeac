"""Hub inside the command `demo`: its application without a socket, at moments of the last week.

The clock of the process is moved while the hub is filled, so that everything has the time at which
it would have happened. Reactions to events run in between. Nothing leaves the machine: receivers of
webhooks are played, and slow tasks that are not needed here wait for `hublet serve`.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256, shake_256
from typing import Any
from urllib.parse import urlencode

from hublet.app import create_application, with_edge
from hublet.community.reactions import NOTE_COMMITS
from hublet.core import clock, outbox, queue
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.queue import decode, handlers
from hublet.core.queue.lanes import QuickLane
from hublet.core.queue.leases import TaskLeases
from hublet.search.index import REFRESH
from hublet.webhooks.delivery import lanes_store, store
from hublet.webhooks.delivery.claims import ClaimedBatch, claim_due, claim_fresh
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.delivery.outcomes import write_outcomes
from hublet.webhooks.records import Attempt, ClaimedDelivery, Outcome

_SLOW_TASKS = {NOTE_COMMITS, REFRESH}
_MAX_ROUNDS = 100
_GONE = 410


class Chance:
    """Numbers that look like chance and are the same in every demo; no secret is made of them."""

    def __init__(self, seed: str) -> None:
        self._state = sha256(seed.encode()).digest()

    def randbytes(self, count: int) -> bytes:
        self._state = sha256(self._state).digest()
        return shake_256(self._state).digest(count)

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * int.from_bytes(self.randbytes(4)) / 2**32

    def randrange(self, low: int, high: int) -> int:
        return int(self.uniform(low, high))


# Plays a receiver: the attempt that a delivery makes at it.
Receiver = Callable[[ClaimedDelivery, Chance], Attempt]


class DemoHub:
    """A hub that is filled: what people ask of it, and what follows from that."""

    def __init__(self, database: Database, tokens: Mapping[str, str], *, seed: str) -> None:
        self.database = database
        self.random = Chance(seed)
        # Receivers, by the id of their webhook.
        self.receivers: dict[str, Receiver] = {}
        self._tokens = tokens
        self._worker = new_object_id()
        self._leases = TaskLeases(database, worker=self._worker)
        self._quick = QuickLane(database, self._leases)
        self._lanes = Lanes(concurrency=64)
        application = create_application(database)
        self.downloads = application.state.downloads
        self._app = with_edge(application)

    def set_time(self, moment: datetime) -> None:
        clock.move(moment - clock.now())

    async def ask(
        self,
        who: str,
        method: str,
        path: str,
        body: object = None,
        *,
        content: bytes | None = None,
        kind: str = "application/json",
        **query: str,
    ) -> Any:
        """Send a request in the name of a person; return the body of the response."""
        data = (
            content if content is not None else b"" if body is None else json.dumps(body).encode()
        )
        parts: list[bytes] = []
        status = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        await self._app(self._scope(who, method, path, kind, query, len(data)), receive, send)
        answer = b"".join(parts)
        if status >= 400:  # noqa: PLR2004 - what HTTP calls an error
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer) if answer[:1] in {b"{", b"["} else answer.decode(errors="replace")

    def _scope(
        self, who: str, method: str, path: str, kind: str, query: Mapping[str, str], size: int
    ) -> dict[str, Any]:
        headers = {
            "host": "demo",
            "authorization": f"Bearer {self._tokens[who]}",
            "content-type": kind,
            "content-length": str(size),
            "user-agent": "hublet-demo",
        }
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("demo", 80),
        }

    async def settle(self) -> None:
        """Let everything follow that follows from what was asked: inboxes, counts, search."""
        for _ in range(_MAX_ROUNDS):
            async with self.database.read() as conn:
                has_events = await outbox.is_waiting(conn)
            if has_events:
                async with self.database.transaction() as conn:
                    await outbox.dispatch(conn, limit=1000)
            seconds = await self._quick.seconds_until_due()
            has_tasks = seconds is not None and seconds <= 0
            if has_tasks:
                await self._quick.step()
            if not has_events and not has_tasks:
                return
            await self._run_slow_tasks()

    async def _run_slow_tasks(self) -> None:
        tasks = await self._leases.claim(slow=True, limit=100)
        wanted = [each for each in tasks if each.kind in _SLOW_TASKS]
        for task in wanted:
            handler = handlers[task.kind]
            await handler.run(self.database, decode(handler, task.body))
        async with self.database.transaction() as conn:
            for task in wanted:
                await queue.finish(conn, task)
            await queue.release(conn, [each for each in tasks if each not in wanted])
        self._leases.drop(tasks)

    async def deliver(self) -> None:
        """Make the attempts that are due at this moment."""
        async with self.database.read() as conn:
            due_at = await lanes_store.next_due(conn, except_for=())
            if not await store.has_fresh(conn) and (due_at is None or due_at > micros()):
                return
        batch = ClaimedBatch()
        async with self.database.transaction() as conn:
            await claim_fresh(conn, self._lanes, batch, worker=self._worker)
            await claim_due(conn, self._lanes, batch, worker=self._worker)
        outcomes = [self._outcome(each) for each in batch.deliveries]
        if outcomes:
            async with self.database.transaction() as conn:
                await write_outcomes(conn, outcomes, {}, worker=self._worker)

    def _outcome(self, delivery: ClaimedDelivery) -> Outcome:
        attempt = self.receivers[delivery.webhook_id](delivery, self.random)
        status = attempt.status or 0
        return Outcome(
            delivery=delivery,
            attempt=attempt,
            succeeded=200 <= status < 300,  # noqa: PLR2004 - what HTTP calls a success
            gone=status == _GONE,
        )


def answer(
    delivery: ClaimedDelivery,
    chance: Chance,
    target: str,
    status: int,
    text: str,
    *,
    why: str | None = None,
) -> Attempt:
    """Return an attempt that was answered, in about the time that such things take."""
    dns, connect, tls = (
        chance.randrange(*span) for span in ((300, 4000), (8000, 30_000), (9000, 40_000))
    )
    first = dns + connect + tls + chance.randrange(20_000, 180_000)
    return Attempt(
        number=delivery.attempts + 1,
        started_at=micros(),
        target=target,
        status=status,
        detail=why,
        dns_micros=dns,
        connect_micros=connect,
        tls_micros=tls,
        first_byte_micros=first,
        total_micros=first + chance.randrange(300, 4000),
        response=text.encode(),
    )


def silence(delivery: ClaimedDelivery, target: str, *, reason: str, detail: str) -> Attempt:
    """Return an attempt that nobody answered."""
    return Attempt(
        number=delivery.attempts + 1,
        started_at=micros(),
        target=target,
        reason=reason,
        detail=detail,
        dns_micros=1900,
        total_micros=10_000_000,
    )
