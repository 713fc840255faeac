"""What a job prints, as the public client reads it over a socket."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx2
import pytest
from fastapi import FastAPI
from huggingface_hub import HfApi

from hublet.core.database import Database
from jobs.jobs_api import PATH, run
from jobs.log_lines import say, set_stage
from jobs.public_client import public_client
from patience import SOON_SECONDS
from people import Headers

STARTED = "===== Job started at 2026-11-15T12:00:00.000Z ====="


@pytest.fixture
async def api(app: FastAPI, database: Database) -> AsyncIterator[HfApi]:
    async with public_client(app, database, "ada") as api:
        yield api


async def fetch(
    api: HfApi, job_id: str, *, follow: bool = False, tail: int | None = None
) -> list[str]:
    def read() -> list[str]:
        asked = api.fetch_job_logs(job_id=job_id, namespace="ada", follow=follow, tail=tail)
        return list(asked)

    return await asyncio.wait_for(asyncio.to_thread(read), SOON_SECONDS)


async def test_the_client_reads_a_job_that_is_over_at_once(
    api: HfApi, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = (await run(client, ada))["id"]
    say(database, job_id, STARTED, "one", "t\u2028wo", "")
    await set_stage(database, job_id, "COMPLETED")

    async with asyncio.timeout(SOON_SECONDS):
        assert await fetch(api, job_id) == ["one", "t\u2028wo", ""]
        assert await fetch(api, job_id, tail=2) == ["t\u2028wo", ""]
        assert await fetch(api, job_id, follow=True) == ["one", "t\u2028wo", ""]


async def test_the_client_follows_a_job_from_its_queue_to_its_end(
    api: HfApi, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = (await run(client, ada))["id"]
    reading = asyncio.ensure_future(fetch(api, job_id, follow=True))
    await asyncio.sleep(0.3)
    await set_stage(database, job_id, "RUNNING")
    said = list[str]()
    for part in range(5):
        lines = [f"{part}: {number}" for number in range(2000)]
        say(database, job_id, STARTED, *lines)
        said += lines
        await asyncio.sleep(0.05)
    await set_stage(database, job_id, "COMPLETED")

    assert await reading == said


async def test_the_answer_says_what_hour_it_is(
    api: HfApi, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = (await run(client, ada))["id"]
    await set_stage(database, job_id, "COMPLETED")

    async with httpx2.AsyncClient(base_url=api.endpoint, trust_env=False) as caller:
        response = await caller.get(f"{PATH}/{job_id}/logs", headers=ada)

    # The public client compares it with the times of the lines.
    passed = datetime.now(UTC) - parsedate_to_datetime(response.headers["date"])
    assert abs(passed) < timedelta(seconds=2)
    assert response.headers.get_list("date", split_commas=False) == [response.headers["date"]]
