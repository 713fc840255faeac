"""Everything that starts a job later in somebody's name, for tests: each returns why it did not."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx2

from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.jobs import store as jobs
from hublet.runtime.errors import CannotRun
from hublet.runtime.volumes.preparation import prepare
from hublet.webhooks.delivery.engine import DeliveryEngine
from jobs.jobs_api import BODY
from jobs.schedules_api import run_due
from people import Headers
from webhooks.engine_rows import attempts_of, settle, trigger

WATCHED = [{"type": "user", "name": "ada"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A hub with a delivery engine, and somebody who may do everything by hand."""

    client: httpx2.AsyncClient
    database: Database
    engine: DeliveryEngine
    ada: Headers
    # Whose webhooks and jobs: ada's own, or those of the organization.
    organization: str | None = None

    @property
    def webhooks(self) -> str:
        owner = "" if self.organization is None else f"organizations/{self.organization}/"
        return f"/api/{owner}settings/webhooks"

    @property
    def owner(self) -> str:
        return self.organization or "ada"

    async def post(self, who: Headers, path: str, body: Any = None) -> Any:
        response = await self.client.post(path, headers=who, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def webhook(self, who: Headers, **job: Any) -> str:
        body = {"watched": WATCHED, "domains": ["repo"], "job": BODY | job}
        webhook_id: str = (await self.post(who, self.webhooks, body))["webhook"]["id"]
        return webhook_id

    async def refusal_of(self, delivery_id: str) -> str | None:
        last = (await attempts_of(self.database, delivery_id))[-1]
        assert (last["job_id"] is None) == (last["reason"] == "job-refused")
        detail: str | None = last["detail"]
        return detail


# Sets something up now; what it returns lets it act, and returns why it could not.
Delayed = Callable[[], Awaitable[str | None]]


async def a_trigger(scene: Scene, who: Headers, **job: Any) -> Delayed:
    webhook_id = await scene.webhook(who, **job)

    async def act() -> str | None:
        [delivery_id] = await trigger(scene.database, webhook_id)
        await settle(scene.engine)
        return await scene.refusal_of(delivery_id)

    return act


async def a_ping(scene: Scene, who: Headers, **job: Any) -> Delayed:
    webhook_id = await scene.webhook(who, **job)

    async def act() -> str | None:
        sent = await scene.post(scene.ada, f"{scene.webhooks}/{webhook_id}/ping")
        return await scene.refusal_of(sent["deliveryId"])

    return act


async def _unsent(scene: Scene, who: Headers, **job: Any) -> tuple[str, str]:
    """Return the path of a webhook, and a delivery that it missed."""
    webhook_id = await scene.webhook(who, **job)
    path = f"{scene.webhooks}/{webhook_id}"
    await scene.post(scene.ada, f"{path}/disable")
    [delivery_id] = await trigger(scene.database, webhook_id)
    await settle(scene.engine)
    await scene.post(scene.ada, f"{path}/enable")
    return path, delivery_id


async def a_replay(scene: Scene, who: Headers, **job: Any) -> Delayed:
    path, delivery_id = await _unsent(scene, who, **job)

    async def act() -> str | None:
        await scene.post(scene.ada, f"{path}/replay/{delivery_id}")
        return await scene.refusal_of(delivery_id)

    return act


async def a_recovery(scene: Scene, who: Headers, **job: Any) -> Delayed:
    path, delivery_id = await _unsent(scene, who, **job)

    async def act() -> str | None:
        since = wire(now() - timedelta(days=1))
        assert await scene.post(scene.ada, f"{path}/recover", {"since": since}) == {"count": 1}
        await settle(scene.engine)
        return await scene.refusal_of(delivery_id)

    return act


async def a_schedule(scene: Scene, who: Headers, **job: Any) -> Delayed:
    body = {"schedule": "@hourly", "concurrency": True, "jobSpec": BODY | job}
    made = await scene.post(who, f"/api/scheduled-jobs/{scene.owner}", body)

    async def act() -> str | None:
        await run_due(scene.database, made["id"])
        async with scene.database.read() as conn:
            row = await conn.fetch_one(
                "SELECT last_job_id, last_skip_reason FROM scheduled_jobs WHERE id = $1", made["id"]
            )
        assert row is not None
        assert (row["last_job_id"] is None) == (row["last_skip_reason"] is not None)
        reason: str | None = row["last_skip_reason"]
        return reason

    return act


async def a_retry(scene: Scene, who: Headers, **job: Any) -> Delayed:
    made = await scene.post(who, f"/api/jobs/{scene.owner}", BODY | {"attempts": 2} | job)

    async def act() -> str | None:
        async with scene.database.read() as conn:
            owner_id = await conn.fetch_value("SELECT owner_id FROM jobs WHERE id = $1", made["id"])
            record = await jobs.find(conn, made["id"], owner_id=owner_id)
        assert record is not None
        folder = scene.database.hub.settings.database.data_dir / "attempt-2"
        try:
            await prepare(scene.database, record, folder=folder)
        except CannotRun as error:
            return f"{error}."
        return None

    return act


DELAYED = (a_trigger, a_ping, a_replay, a_recovery, a_schedule, a_retry)
