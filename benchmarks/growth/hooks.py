"""Webhooks of others that a push passes by, and deliveries that are kept."""

import asyncio
from collections.abc import Mapping

from benchmarks.growth.curves import Operation, Topic
from benchmarks.growth.local_app import cursor_at, ids_from
from benchmarks.sink import Endpoint, Heap
from benchmarks.webhook_scene import a_push, a_repo
from hublet.core.ids import new_object_id
from hublet.events import RepoContentUpdated, RepoSnapshot
from hublet.webhooks.delivery.engine import DeliveryEngine
from hublet.webhooks.triggers import service as triggers

_PATH = "/api/settings/webhooks"
_PER_OWNER = 100
# Of a hundred deliveries, so many are of the webhook whose log is read.
_OF_ONE = 50


def _request(repo_name: str, url: str) -> Mapping[str, object]:
    watched = [{"type": "model", "name": repo_name}]
    return {"url": url, "watched": watched, "domains": ["repo", "discussion"]}


class Webhooks(Topic):
    """Webhooks of many owners, each at a repository of its own; three are the caller's."""

    name = "webhooks"
    sizes = (100, 1_000, 10_000, 100_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        ids = ids_from(before, size - before)
        owners = ids_from(0, size // _PER_OWNER + 1)
        begun = 0 if not before else before // _PER_OWNER + 1
        named = [(f"maker-{number}", owners[number]) for number in range(begun, len(owners))]
        changes: dict[str, list[Mapping[str, object]]] = {
            "users": [{"id": key, "name": name, "fullname": name} for name, key in named],
            "names": [{"key": name, "account_id": key} for name, key in named],
            "webhooks": [
                {"id": each, "owner_id": owner, "creator_id": owner}
                for number, each in enumerate(ids, start=before)
                for owner in [owners[number // _PER_OWNER]]
            ],
            "webhook_watched": [{"webhook_id": each, "target": new_object_id()} for each in ids],
        }
        for table, rows in changes.items():
            await self.app.add_copies(table, self._rows[table], rows)

    async def _begin(self) -> None:
        await self.app.ask("POST", "/api/repos/create", {"name": "engine"})
        for _ in range(3):
            hook = (await self._create()).json["webhook"]["id"]
        self._rows = {
            "users": await self.app.row_of("users", name="ada"),
            "names": await self.app.row_of("names", key="ada"),
            "webhooks": await self.app.row_of("webhooks", id=hook),
            "webhook_watched": await self.app.row_of("webhook_watched", webhook_id=hook),
        }
        one = await self.app.row_of("webhook_watched", webhook_id=hook)
        repo = await self.app.row_of("repos", id=one["target"])
        self._matching = a_push(_snapshot(str(repo["id"]), self.app.user.id))
        self._elsewhere = a_push(a_repo(owner_id=new_object_id()))

    async def _create(self) -> object:
        url = "https://receiver.test/hook"
        self._created = await self.app.ask("POST", _PATH, _request("ada/engine", url))
        return self._created

    async def _remove(self) -> None:
        await self.app.ask("DELETE", f"{_PATH}/{self._created.json['webhook']['id']}")

    def operations(self) -> Mapping[str, Operation]:
        return {
            "a push that none hears": Operation(run=lambda: self._push(self._elsewhere)),
            "a push that three hear": Operation(run=lambda: self._push(self._matching)),
            "list of one's own": self.getting(_PATH),
            "a new webhook": Operation(run=self._create, after=self._remove),
        }

    async def _push(self, event: RepoContentUpdated) -> None:
        async with self.app.database.transaction() as conn:
            await triggers.record_event(conn, event)


def _snapshot(repo_id: str, owner_id: str) -> RepoSnapshot:
    return RepoSnapshot(
        id=repo_id, type="model", name="ada/engine", owner_id=owner_id, private=False
    )


class Deliveries(Topic):
    """Deliveries that are kept, half of them of one webhook."""

    name = "deliveries kept"
    sizes = (1_000, 10_000, 100_000, 1_000_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        ids = ids_from(before, size - before)
        hooks = [
            self._hooks[0] if number % 100 < _OF_ONE else self._hooks[1 + number % 9]
            for number in range(before, size)
        ]
        times = [int(each[:8], 16) * 1_000_000 for each in ids]
        changes = {
            "webhook_events": (
                {"id": each, "created_at": at} for each, at in zip(ids, times, strict=True)
            ),
            "webhook_deliveries": (
                {
                    "id": each,
                    "event_id": each,
                    "webhook_id": hook,
                    "due_at": at,
                    "created_at": at,
                    "finished_at": at,
                }
                for each, at, hook in zip(ids, times, hooks, strict=True)
            ),
            "webhook_attempts": (
                {"id": each, "delivery_id": each, "started_at": at}
                for each, at in zip(ids, times, strict=True)
            ),
        }
        for table, rows in changes.items():
            await self.app.add_copies(table, self._rows[table], rows)
        self._middle = ids_from(size // 2, 1)[0]

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._receiver = _Receiver()
        server = await loop.create_server(self._receiver.endpoint, "127.0.0.1", 0)
        # With a server that listens, the end of uvloop may wait for ever.
        self.app.beside.callback(server.close)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        await self.app.ask("POST", "/api/repos/create", {"name": "engine"})
        self._hooks = list[str]()
        for number in range(10):
            # Only the first one hears of what is pushed.
            if number == 1:
                await self.app.ask("POST", "/api/repos/create", {"name": "other"})
            name = "ada/other" if number else "ada/engine"
            answer = await self.app.ask("POST", _PATH, _request(name, url))
            self._hooks.append(answer.json["webhook"]["id"])
        one = await self.app.row_of("webhook_watched", webhook_id=self._hooks[0])
        self._event = a_push(_snapshot(str(one["target"]), self.app.user.id))
        await self._start()
        await self._deliver()
        await self._stop()
        tables = ("webhook_events", "webhook_deliveries", "webhook_attempts")
        found = await self.app.row_of("webhook_deliveries", webhook_id=self._hooks[0])
        keys = {
            "webhook_events": "id",
            "webhook_deliveries": "id",
            "webhook_attempts": "delivery_id",
        }
        values = {"webhook_events": found["event_id"]}
        self._rows = {
            table: await self.app.row_of(table, **{keys[table]: values.get(table, found["id"])})
            for table in tables
        }

    def operations(self) -> Mapping[str, Operation]:
        one = f"{_PATH}/{self._hooks[0]}"
        return {
            "first page of the log": self.getting(f"{one}/deliveries?limit=20"),
            "page in the middle": self.getting(
                f"{one}/deliveries?limit=20&{cursor_at(self._middle)}"
            ),
            "state of a webhook": self.getting(f"{one}/activity"),
            "a delivery, to its outcome": Operation(
                before=self._start, run=self._deliver, after=self._stop
            ),
        }

    async def _start(self) -> None:
        self._engine = DeliveryEngine(self.app.database, new_object_id())
        self._engine.start()
        self._receiver.arrived.clear()

    async def _deliver(self) -> None:
        async with self.app.database.transaction() as conn:
            await triggers.record_event(conn, self._event)
        await self._receiver.arrived.wait()
        await self._engine.finish()

    async def _stop(self) -> None:
        await self._engine.stop()


class _Receiver(Heap):
    """Answers at once, and tells when something has come."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()

    def endpoint(self) -> Endpoint:
        return _AlertEndpoint(self, 0)


class _AlertEndpoint(Endpoint):
    def __init__(self, receiver: _Receiver, number: int) -> None:
        super().__init__(receiver, number)
        self._receiver = receiver

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._receiver.arrived.set()
