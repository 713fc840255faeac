"""A repository that webhooks watch, events about it, and the worker that delivers them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from benchmarks.figures import Spoiled
from benchmarks.hubs import Engine, Site
from benchmarks.machine import tied_to
from benchmarks.processes import COMMANDS, Child, running
from benchmarks.sink import Sink
from benchmarks.workbench import Workbench
from hublet import serving
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import RepoContentUpdated, RepoSnapshot, UpdatedRef
from hublet.webhooks import store
from hublet.webhooks.records import Domain, WatchedItem, WatchedType, WebhookRecord, WebhookSecrets
from hublet.webhooks.sealed_secrets import seal
from hublet.webhooks.triggers import service as triggers
from hublet.worker import Worker

WEBHOOKS = 50
# Where the worker runs that `working` starts.
WHERE: dict[Engine, str] = {"SQLite": "one process", "PostgreSQL": "the worker in its own process"}
# With these branches the body is 1.2 kB long.
_BRANCHES = 6
_NO_LIMIT = 1_000_000_000
# Loopback may be called, and no delivery is over the limit of its day.
VARIABLES = {
    "HUBLET_TEST_MODE": "1",
    "HUBLET_WEBHOOKS_DAILY_TRIGGERS": str(_NO_LIMIT),
    "HUBLET_LOGS_LEVEL": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A hub in which webhooks, one for each endpoint of the sink, watch one repository."""

    database: Database
    event: RepoContentUpdated
    webhooks: int

    async def record(self, events: int) -> None:
        """Let so many things happen, in one commit."""
        async with self.database.transaction() as conn:
            for _ in range(events):
                await triggers.record_event(conn, self.event)

    async def all_written(self, *, seconds: float) -> None:
        """Wait until no delivery is held or waits; ask only when all of them have arrived."""
        deadline = time.monotonic() + seconds
        while await self._is_any("state = 'fresh'") or await self._is_any("claimed_by IS NOT NULL"):
            if time.monotonic() > deadline:
                raise Spoiled(f"Results were not written within {seconds:.0f} seconds.")
            await asyncio.sleep(0.002)

    async def count_unwritten(self, expected: int) -> int:
        """Return how many of so many deliveries lack their end or the log of their attempt."""
        delivered = await self._value(
            "SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'"
        )
        attempts = await self._value("SELECT count(*) FROM webhook_attempts")
        return max(expected - delivered, expected - attempts)

    async def _is_any(self, condition: str) -> bool:
        return await self._value(f"SELECT 1 FROM webhook_deliveries WHERE {condition} LIMIT 1") > 0

    async def _value(self, sql: str) -> int:
        async with self.database.read() as conn:
            return await conn.fetch_value(sql) or 0


def settings_of(site: Site) -> Settings:
    return site.settings(
        server__test_mode=True, webhooks__daily_triggers=_NO_LIMIT, logs__level="warning"
    )


async def create_scene(database: Database, urls: Sequence[str]) -> Scene:
    async with database.transaction() as conn:
        ada = await accounts.create_user(conn, "ada", email="ada@hub.test")
        repo = a_repo(owner_id=ada.id)
        for url in urls:
            webhook = _webhook(repo, url)
            sealed = seal(
                database.hub.keys, webhook.id, WebhookSecrets(current="as secret as it gets")
            )
            await store.add(conn, webhook, sealed)
    return Scene(database=database, event=a_push(repo), webhooks=len(urls))


def a_repo(*, owner_id: str) -> RepoSnapshot:
    return RepoSnapshot(
        id=new_object_id(),
        type="model",
        name="ada/engine",
        owner_id=owner_id,
        private=False,
        head_sha="f" * 40,
        tags=("license:apache-2.0",),
    )


def a_push(repo: RepoSnapshot) -> RepoContentUpdated:
    refs = tuple(
        UpdatedRef(ref=f"refs/heads/branch-{number}", old_sha="0" * 40, new_sha="f" * 40)
        for number in range(_BRANCHES)
    )
    return RepoContentUpdated(repo=repo, updated_refs=refs, actor_id=repo.owner_id)


def _webhook(repo: RepoSnapshot, url: str) -> WebhookRecord:
    watched = WatchedItem(type=WatchedType.model, name=repo.name, target=repo.id)
    return WebhookRecord(
        id=new_object_id(),
        owner_id=repo.owner_id,
        creator_id=repo.owner_id,
        url=url,
        watched=(watched,),
        domains=tuple(Domain),
        created_at=now(),
    )


@contextmanager
def delivering(site: Site, *, core: int | None = None) -> Iterator[Child]:
    """Run `hublet worker` until the body ends."""
    command = [str(COMMANDS / "hublet"), "worker", *site.flags]
    output = site.folder / "worker.log"
    with running(command, output=output, core=core, variables=VARIABLES) as child:
        yield child


@asynccontextmanager
async def working(bench: Workbench, site: Site, database: Database) -> AsyncIterator[None]:
    """Run a worker as the engine has it: in this process on SQLite, beside it on PostgreSQL."""
    if site.database_url is not None:
        with delivering(site, core=bench.cores.server):
            yield
        return
    with tied_to(bench.cores.server):
        worker = Worker(database)
        async with serving.working(database, worker), serving.running(database, worker):
            yield


async def warm_up(scene: Scene, sink: Sink, *, events: int = 4, seconds: float = 60.0) -> int:
    """Have every endpoint called a few times; return how many deliveries that were."""
    await scene.record(events)
    await until(lambda: sink.count() >= events * scene.webhooks, seconds=seconds)
    await scene.all_written(seconds=seconds)
    sink.forget()
    return events * scene.webhooks


async def until(is_so: Callable[[], bool], *, seconds: float) -> None:
    """Look again and again, and let this process's own hub run in between."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise Spoiled(f"Not all deliveries arrived within {seconds:.0f} seconds.")
        await asyncio.sleep(0.01)
