"""What a job uses, as somebody watches it."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from hublet.jobs import hardware, metrics
from hublet.jobs.records import Flavor, Usage
from jobs.jobs_api import PATH, an_attempt, run, set_row
from jobs.log_lines import set_stage
from people import Headers, sign_in
from webhooks.event_streams import StreamClient, open_stream


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_PERIOD_SECONDS", 0.05)


async def a_running_job(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    job_id: str = (await run(client, ada))["id"]
    await an_attempt(database, job_id, runner="process", handle="place of it")
    await set_stage(database, job_id, "RUNNING")
    return job_id


async def metric(ear: StreamClient) -> dict[str, Any]:
    block = await ear.block()
    assert block is not None, "The stream has ended."
    assert block.keys() == {"event", "data"}
    assert block["event"] == "metric"
    told: dict[str, Any] = json.loads(block["data"])
    return told


def watching(app: FastAPI, job_id: str, headers: Headers) -> Any:
    return open_stream(app, f"{PATH}/{job_id}/metrics", headers)


async def test_a_job_that_runs_is_measured_again_and_again(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, quick: None
) -> None:
    asked = list[tuple[str, str]]()

    async def measured(runner: str, handle: str) -> Usage | None:
        asked.append((runner, handle))
        return Usage(
            cpu_millicores=500 * len(asked),
            memory_bytes=1_000_000,
            received_per_second=10,
            sent_per_second=20,
        )

    app.state.jobs.usage = measured
    job_id = await a_running_job(client, database, ada)
    async with watching(app, job_id, ada) as ear:
        first, second = await metric(ear), await metric(ear)

    size = hardware.offered_flavors(database.hub.settings)[Flavor.cpu_basic]
    millicores = round(size.cores * 1000)
    assert first == {
        "cpu_usage_pct": round(50_000 / millicores, 1),
        "cpu_millicores": millicores,
        "memory_used_bytes": 1_000_000,
        "memory_total_bytes": size.memory_bytes,
        "rx_bps": 80,
        "tx_bps": 160,
        "gpus": {},
        "replica": f"{job_id[-5:]}-1",
    }
    assert second == first | {"cpu_usage_pct": round(100_000 / millicores, 1)}
    assert set(asked) == {("process", "place of it")}


async def test_a_measurement_comes_each_second(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_running_job(client, database, ada)
    loop = asyncio.get_running_loop()
    async with watching(app, job_id, ada) as ear:
        await metric(ear)
        began = loop.time()
        await metric(ear)

    assert loop.time() - began > 0.5


async def unknown(_runner: str, _handle: str) -> Usage | None:
    return None


async def test_what_nobody_can_tell_is_nothing_and_the_client_need_not_wait(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, quick: None
) -> None:
    app.state.jobs.usage = unknown
    job_id = await a_running_job(client, database, ada)
    async with watching(app, job_id, ada) as ear:
        told = await metric(ear)

    assert (told["cpu_usage_pct"], told["memory_used_bytes"]) == (0, 0)
    assert told["memory_total_bytes"] > 0


async def test_an_attempt_that_ended_is_not_measured(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, quick: None
) -> None:
    asked = list[str]()

    async def measured(_runner: str, handle: str) -> Usage | None:
        asked.append(handle)
        return None

    app.state.jobs.usage = measured
    job_id: str = (await run(client, ada))["id"]
    await an_attempt(database, job_id, ended_at=1)
    await set_stage(database, job_id, "RUNNING")
    async with watching(app, job_id, ada) as ear:
        await metric(ear)

    assert asked == []


async def test_of_several_attempts_the_one_that_runs_is_measured(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, quick: None
) -> None:
    asked = list[str]()

    async def measured(runner: str, handle: str) -> Usage | None:
        asked.append(handle)
        return None

    app.state.jobs.usage = measured
    job_id: str = (await run(client, ada))["id"]
    await an_attempt(database, job_id, number=1, ended_at=1, handle="first")
    await an_attempt(database, job_id, number=2, handle="second")
    await set_row(database, job_id, attempt=2)
    await set_stage(database, job_id, "RUNNING")
    async with watching(app, job_id, ada) as ear:
        assert (await metric(ear))["replica"] == f"{job_id[-5:]}-2"

    assert set(asked) == {"second"}


async def test_a_job_that_waits_is_measured_when_it_runs_and_the_stream_ends_with_it(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert metrics.KEEP_ALIVE_SECONDS == 30
    monkeypatch.setattr(metrics, "KEEP_ALIVE_SECONDS", 0.2)
    job_id: str = (await run(client, ada))["id"]
    async with watching(app, job_id, ada) as ear:
        assert await ear.block() == {"": "keep-alive"}
        await set_stage(database, job_id, "RUNNING")
        while (await ear.block() or {}).keys() != {"event", "data"}:
            pass
        await set_stage(database, job_id, "COMPLETED")
        assert await ear.ends()


async def test_the_stream_ends_with_the_access(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "KEEP_ALIVE_SECONDS", 0.2)
    job_id = await a_running_job(client, database, ada)
    async with watching(app, job_id, ada) as ear:
        await metric(ear)
        async with database.transaction() as conn:
            await conn.execute("DELETE FROM tokens")
        assert await ear.ends()


@pytest.mark.parametrize("stage", ["COMPLETED", "ERROR", "CANCELED", "DELETED"])
async def test_of_a_job_that_is_over_the_stream_ends_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: str
) -> None:
    job_id: str = (await run(client, ada))["id"]
    await set_stage(database, job_id, stage)

    response = await client.get(f"{PATH}/{job_id}/metrics", headers=ada)

    assert (response.status_code, response.text) == (200, "")


async def test_a_flavor_that_is_offered_no_more_has_a_size_all_the_same(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, quick: None
) -> None:
    job_id = await a_running_job(client, database, ada)
    async with database.transaction() as conn:
        await conn.execute("UPDATE jobs SET spec = replace(spec, 'cpu-basic', 'a100x8')")
    async with watching(app, job_id, ada) as ear:
        told = await metric(ear)

    assert (told["cpu_millicores"], told["memory_total_bytes"]) == (1000, 2**30)


async def test_nobody_else_sees_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id: str = (await run(client, ada))["id"]
    bob = await sign_in(database, "bob")

    response = await client.get(f"{PATH}/{job_id}/metrics", headers=bob)

    sentence = {"error": f"There is no job {job_id}, or you cannot see it."}
    assert (response.status_code, response.json()) == (404, sentence)
