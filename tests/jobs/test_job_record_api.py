"""The record of a job: interface 2.2 to the letter, and what only the public clients get."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from jobs import schedules_api
from jobs.jobs_api import PATH, run
from people import Headers, a_user

# Interface 2.2, in its order.
FIELDS = [
    "id", "createdAt", "owner", "spaceId", "dockerImage", "timeout", "environment", "secrets",
    "command", "arguments", "arch", "flavor", "status", "createdBy", "tags", "resourceGroupId",
    "retry", "startedAt", "finishedAt", "durations", "volumes", "expose", "network",
]  # fmt: skip
LABELS = {"name": "x", "flag": ""}

PYTHON = "unknown/None; hf_hub/2.4.0; python/3.11.7"
JAVASCRIPT = "huggingface.js/2.6.0 node"


@pytest.fixture
async def bare(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Like `client`, but its answers are not held against the description."""
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        yield client


def test_the_description_shows_the_record_of_the_interface(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]

    assert list(schemas["Job"]["properties"]) == FIELDS
    assert list(schemas["JobOwner"]["properties"]) == ["id", "name"]
    assert "labels" not in schemas["JobSpec"]["properties"]
    operation = described["paths"]["/api/jobs/{namespace}"]["get"]
    listed = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert listed["items"] == {"$ref": "#/components/schemas/Job"}


@pytest.mark.parametrize("agent", [PYTHON, JAVASCRIPT])
async def test_a_public_client_also_gets_what_it_cannot_do_without(
    bare: httpx2.AsyncClient, database: Database, ada: Headers, agent: str
) -> None:
    plain = await run(bare, ada, labels=LABELS)
    user = await a_user(database, "ada")
    headers = ada | {"User-Agent": agent}
    one = (await bare.get(f"{PATH}/{plain['id']}", headers=headers)).json()
    [listed] = (await bare.get(PATH, headers=headers)).json()

    for job in (one, listed):
        assert job | {"durations": None} == plain | {
            "durations": None,
            "owner": {"id": user.id, "name": "ada", "type": "user"},
            "labels": LABELS,
            "initiator": {"type": "user", "id": user.id, "name": "ada"},
        }


@pytest.mark.parametrize("agent", [PYTHON, JAVASCRIPT])
async def test_of_a_scheduled_job_too(
    bare: httpx2.AsyncClient, database: Database, ada: Headers, agent: str
) -> None:
    plain = await schedules_api.a_schedule(bare, ada, spec={"labels": LABELS})
    user = await a_user(database, "ada")
    headers = ada | {"User-Agent": agent}
    scheduled = await schedules_api.show(bare, headers, plain["id"])

    assert plain["jobSpec"]["tags"] == ["name=x", "flag"]
    assert scheduled == plain | {
        "owner": {"id": user.id, "name": "ada", "type": "user"},
        "jobSpec": plain["jobSpec"] | {"labels": LABELS},
    }


@pytest.mark.parametrize(
    "agent", ["", "curl/8.5.0", "hublet/0.1.0", "Mozilla/5.0 huggingface", "python-hf_hub"]
)
async def test_nobody_else_gets_more_than_the_interface_shows(
    client: httpx2.AsyncClient, ada: Headers, agent: str
) -> None:
    headers = ada | {"User-Agent": agent}
    job = await run(client, headers, labels=LABELS)

    assert set(job) <= set(FIELDS)
    assert job["tags"] == ["name=x", "flag"]
    assert set(job["owner"]) == {"id", "name"}
