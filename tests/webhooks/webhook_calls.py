"""Webhooks for tests, one line each, through the API."""

from typing import Any

import httpx2

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.jobs import store as jobs
from hublet.jobs.records import Flavor, Initiator, InitiatorType, JobRecord, Spec, Stage
from hublet.tokens.delegations import Delegation
from people import Headers, a_user

PATH = "/api/settings/webhooks"
URL = "https://example.com/hook"
WATCHED = [{"type": "user", "name": "ada"}]
DOMAINS = ["repo", "discussion"]
BODY = {"watched": WATCHED, "domains": DOMAINS, "url": URL}
JOB_ID = "0123456789abcdef01234567"
IMAGE_JOB = {"dockerImage": "ubuntu", "flavor": "cpu-basic"}


async def a_source_job(database: Database, *, job_id: str = JOB_ID, owner: str = "ada") -> None:
    """Let a user have had a job, from which a webhook may start others."""
    user = await a_user(database, owner)
    job = JobRecord(
        id=job_id,
        owner_id=user.id,
        creator_id=user.id,
        delegation=Delegation(user_id=user.id),
        initiator=Initiator(type=InitiatorType.user, id=user.id),
        spec=Spec(image="ubuntu", environment={}, flavor=Flavor.cpu_basic),
        labels={},
        stage=Stage.completed,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await jobs.add(conn, job, sealed=None, key=None)


async def create(
    client: httpx2.AsyncClient, headers: Headers, *, path: str = PATH, **body: Any
) -> Any:
    """Return a new webhook of a user called ada; name only what the test is about."""
    target = {} if {"job", "jobSourceId"} & body.keys() else {"url": URL}
    body = {"watched": WATCHED, "domains": DOMAINS} | target | body
    response = await client.post(path, headers=headers, json=body)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def update(client: httpx2.AsyncClient, headers: Headers, webhook_id: str, **body: Any) -> Any:
    response = await client.post(f"{PATH}/{webhook_id}", headers=headers, json=body)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def show(client: httpx2.AsyncClient, headers: Headers, webhook_id: str) -> Any:
    response = await client.get(f"{PATH}/{webhook_id}", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def refusal(
    client: httpx2.AsyncClient, headers: Headers, body: Any, *, path: str = PATH
) -> tuple[int, Any]:
    """Return the status and the sentence with which a body is refused."""
    response = await client.post(path, headers=headers, json=body)
    return response.status_code, response.json().get("error")
