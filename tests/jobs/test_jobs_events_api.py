"""How a job is followed: each stage it had, and each that it gets."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.jobs import routes
from jobs.jobs_api import PATH, run
from patience import SOON_SECONDS
from people import Headers
from repositories import disable


async def happens(
    database: Database, job_id: str, stage: str, message: str | None = None, **columns: Any
) -> None:
    """Let a job come so far, as the one who looks after it would keep it."""
    row = {"id": new_object_id(), "attempt": 1, "at": micros()} | columns
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO job_events (id, job_id, stage, message, attempt, at)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            row["id"], job_id, stage, message, row["attempt"], row["at"],
        )  # fmt: skip
        conn.wake("jobs")


def told(text: str) -> list[tuple[str, str | None, int]]:
    """Return stage, message and attempt of each event of a stream."""
    events = [piece for piece in text.split("\n\n") if "data: " in piece]
    lines = [event.split("\n") for event in events]
    assert all(names == "event: status" for names, *_ in lines)
    bodies = [json.loads(data.removeprefix("data: ")) for _, _, data in lines]
    for body in bodies:
        assert body.keys() == {"stage", "message", "attempt", "timestamp"}
        assert body["timestamp"].endswith("Z")
    return [(body["stage"], body["message"], body["attempt"]) for body in bodies]


async def test_a_job_that_is_over_is_told_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    await happens(database, job["id"], "RUNNING")
    await happens(database, job["id"], "ERROR", "exit code 1", attempt=2)

    async with asyncio.timeout(SOON_SECONDS):
        response = await client.get(f"{PATH}/{job['id']}/events", headers=ada)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert told(response.text) == [
        ("SCHEDULING", "queued", 1),
        ("RUNNING", None, 1),
        ("ERROR", "exit code 1", 2),
    ]


async def test_who_follows_hears_everything_once_whatever_the_ids(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    following = asyncio.create_task(client.get(f"{PATH}/{job['id']}/events", headers=ada))
    # Of another process, whose ids are smaller than those of this one.
    for number, stage in enumerate(["SCHEDULING", "RUNNING", "COMPLETED"]):
        await asyncio.sleep(0.3)
        await happens(database, job["id"], stage, id=f"{number:024x}")
        assert not following.done() or stage == "COMPLETED"

    async with asyncio.timeout(SOON_SECONDS):
        response = await following
    stages = [stage for stage, _, _ in told(response.text)]
    assert stages == ["SCHEDULING", "SCHEDULING", "RUNNING", "COMPLETED"]


async def test_a_quiet_stream_shows_that_it_lives_and_ends_with_the_access(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(routes, "_STOP_LOOK_SECONDS", 0.1)
    job = await run(client, ada)
    following = asyncio.create_task(client.get(f"{PATH}/{job['id']}/events", headers=ada))
    await asyncio.sleep(0.7)
    assert not following.done()
    await disable(database, "ada")

    async with asyncio.timeout(SOON_SECONDS):
        response = await following
    assert response.text.startswith("event: status\n")
    assert response.text.count(": keep-alive\n\n") >= 1
