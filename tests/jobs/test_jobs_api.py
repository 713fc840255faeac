"""Jobs as their owner runs, sees and changes them."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.clock import micros, to_micros, wire
from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database
from hublet.jobs.hardware import list_hardware
from jobs.jobs_api import PATH, Capable, an_attempt, row_of, run, set_row, show
from patience import SOON_SECONDS
from people import Headers, a_user

EVERYTHING = {
    "dockerImage": "python:3.12",
    "command": ["python", "-c", "print(1)"],
    "arguments": ["-v"],
    "environment": {"AB": "1"},
    "secrets": {"KEY": "hidden", "B": "also hidden"},
    "flavor": "cpu-basic",
    "timeoutSeconds": 60,
    "attempts": 3,
    "labels": {"name": "x", "flag": ""},
    "expose": {"ports": [8000, 80], "portsPublic": [80]},
    "ssh": {"enabled": True},
    "network": {"group": "g", "aliases": ["a"]},
}


async def test_a_job_that_says_little_is_shown_with_its_defaults(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)

    user = await a_user(database, "ada")
    total = job["durations"]["totalSecs"]
    assert job == {
        "id": job["id"],
        "createdAt": job["createdAt"],
        "owner": {"id": user.id, "name": "ada"},
        "dockerImage": "ubuntu",
        "timeout": 1800,
        "environment": {},
        "command": ["true"],
        "flavor": "cpu-basic",
        "status": {"stage": "SCHEDULING", "message": "queued", "failureCount": 0},
        "createdBy": {"id": user.id, "name": "ada"},
        "retry": 0,
        "durations": {"schedulingSecs": total, "runningSecs": 0, "totalSecs": total},
        "tags": [],
    }


async def test_every_field_comes_back_and_secrets_only_as_names(
    client: httpx2.AsyncClient, ada: Headers, app: FastAPI, settings: Settings
) -> None:
    app.state.jobs = Capable(settings)
    response = await client.post(PATH, headers=ada, json=EVERYTHING)
    job = response.json()

    assert "hidden" not in response.text
    expected: dict[str, Any] = {
        "dockerImage": "python:3.12",
        "command": ["python", "-c", "print(1)"],
        "arguments": ["-v"],
        "environment": {"AB": "1"},
        "secrets": {"KEY": None, "B": None},
        "timeout": 60,
        "retry": 2,
        "tags": ["name=x", "flag"],
        "expose": {"ports": [8000, 80], "portsPublic": [80]},
        "network": {"group": "g", "aliases": ["a"]},
        "status": {
            "stage": "SCHEDULING",
            "message": "queued",
            "failureCount": 0,
            "exposeUrls": [
                f"http://{job['id']}--8000.jobs.localhost",
                f"http://{job['id']}--80.jobs.localhost",
            ],
            "sshUrl": f"ssh://{job['id']}@ssh.jobs.localhost:2222",
        },
    }
    assert {name: job[name] for name in expected} == expected
    kept = {name: value for name, value in job.items() if name != "durations"}
    shown = await show(client, ada, job["id"])
    assert {name: value for name, value in shown.items() if name != "durations"} == kept


async def test_a_new_job_waits_to_be_looked_after_with_its_secrets_sealed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    before = micros()
    with database.subscribe("jobs") as bell:
        job = await run(client, ada, secrets={"KEY": "hidden"})
        assert await bell.wait(timeout=SOON_SECONDS)

    row = await row_of(database, job["id"])
    assert before <= row["due_at"] <= micros()
    assert b"hidden" not in row["sealed_secrets"]
    assert "hidden" not in row["spec"]
    assert (row["cancel_requested_at"], row["key"]) == (None, None)


async def test_while_it_runs_its_durations_grow_and_afterwards_they_stay(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = (await run(client, ada))["id"]
    created = to_micros(datetime.fromisoformat((await show(client, ada, job_id))["createdAt"]))
    second = 1_000_000
    # The first attempt ran for 2 seconds, the second began 10 seconds after the creation.
    await set_row(
        database,
        job_id,
        stage="RUNNING",
        message=None,
        created_at=created,
        started_at=created + 3 * second,
        running_micros=2 * second,
        attempt=2,
        failure_count=1,
    )
    await an_attempt(database, job_id, number=1, started_at=created, ended_at=created)
    await an_attempt(database, job_id, number=2, started_at=created + 10 * second)
    clock.move(timedelta(minutes=1))

    running = await show(client, ada, job_id)
    durations = running["durations"]
    assert durations["schedulingSecs"] == 3
    assert 60 <= durations["totalSecs"] < 120
    assert durations["runningSecs"] == pytest.approx(durations["totalSecs"] - 8, abs=0.002)
    assert running["status"] == {"stage": "RUNNING", "message": None, "failureCount": 1}

    ended = {"stage": "ERROR", "message": "exit code 1", "cancel_reason": "SPEND_LIMIT"}
    await set_row(database, job_id, **ended, finished_at=created + 20 * second)
    over = await show(client, ada, job_id)
    assert over["durations"] == {"schedulingSecs": 3, "runningSecs": 2, "totalSecs": 20}
    assert over["status"] == {
        "stage": "ERROR",
        "message": "exit code 1",
        "cancelReason": "SPEND_LIMIT",
        "failureCount": 1,
    }
    assert over["startedAt"] == wire(created + 3 * second)
    assert over["finishedAt"] == wire(created + 20 * second)


async def test_jobs_are_listed_newest_first_page_by_page(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    ids = [(await run(client, ada))["id"] for _ in range(3)]

    first = await client.get(f"{PATH}?limit=2&stage=SCHEDULING", headers=ada)
    assert [job["id"] for job in first.json()] == [ids[2], ids[1]]
    link = first.headers["link"]
    assert link.startswith("<http://hub.test/api/jobs/ada?limit=2&stage=SCHEDULING&cursor=")
    second = await client.get(link[1 : link.index(">")], headers=ada)
    assert [job["id"] for job in second.json()] == [ids[0]]
    assert "link" not in second.headers


async def test_a_list_may_be_of_stages_and_of_labels(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    both = (await run(client, ada, labels={"name": "x", "flag": ""}))["id"]
    one = (await run(client, ada, labels={"name": "x"}))["id"]
    gone = (await run(client, ada))["id"]
    await set_row(database, one, stage="COMPLETED")
    await set_row(database, gone, stage="DELETED")

    async def found(query: str) -> list[str]:
        jobs = (await client.get(f"{PATH}?{query}", headers=ada)).json()
        count = (await client.get(f"{PATH}/count?{query}", headers=ada)).json()
        assert count == {"count": len(jobs)}
        return [job["id"] for job in jobs]

    assert await found("") == [one, both]
    assert await found("stage=COMPLETED") == [one]
    assert await found("stage=COMPLETED&stage=SCHEDULING") == [one, both]
    assert await found("stage=DELETED") == [gone]
    assert await found("stage=RUNNING") == []
    assert await found("label=name=x") == [one, both]
    assert await found("label=name=x&label=flag=") == [both]
    assert await found("label=name=x&label=name=x") == [one, both]
    assert await found("label=name=x&label=name=y") == []
    assert await found("label=name=x&stage=SCHEDULING") == [both]


async def test_a_list_may_be_asked_for_with_any_number_of_labels(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await run(client, ada, labels={"name": "x"})
    labels = "&".join(f"label=name{number}=x" for number in range(2000))

    for query in (labels, f"stage=SCHEDULING&{labels}"):
        listed = await client.get(f"{PATH}?{query}", headers=ada)
        counted = await client.get(f"{PATH}/count?{query}", headers=ada)
        assert (listed.status_code, listed.json()) == (200, [])
        assert (counted.status_code, counted.json()) == (200, {"count": 0})


async def test_what_a_list_is_asked_for_must_be_readable(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    wrong = await client.get(f"{PATH}?label=flag", headers=ada)
    assert (wrong.status_code, wrong.json()["error"]) == (400, "label is written key=value.")
    wrong = await client.get(f"{PATH}?stage=running", headers=ada)
    assert wrong.status_code == 400
    assert wrong.json()["error"].startswith("stage[0] must be one of ")


async def test_the_hardware_is_told_to_anybody(client: httpx2.AsyncClient) -> None:
    response = await client.get("/api/jobs/hardware")

    [entry] = response.json()
    assert entry == {
        "name": "cpu-basic",
        "prettyName": "CPU Basic",
        "cpu": entry["cpu"],
        "ram": entry["ram"],
        "accelerator": None,
        "unitCostMicroUSD": 0,
        "unitCostUSD": 0,
        "unitLabel": "minute",
    }
    assert re.fullmatch(r"[12] vCPU", entry["cpu"])
    assert re.fullmatch(r"[0-9.]+ GB", entry["ram"])


def test_hardware_with_devices_is_an_accelerator() -> None:
    devices = ("/dev/nvidia0", "/dev/nvidia1")
    size = FlavorSize(name="t4-small", cores=4, memory_bytes=2**34, devices=devices)
    settings = Settings()

    [entry] = list_hardware(replace(settings, jobs=replace(settings.jobs, flavors=(size,))))

    assert entry.model_dump()["accelerator"] == {
        "type": "gpu",
        "model": "T4",
        "quantity": "2",
        "vram": "?",
        "manufacturer": "?",
    }


async def test_jobs_are_counted_by_stage_for_the_operator(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await run(client, ada)
    await set_row(database, (await run(client, ada))["id"], stage="ERROR")

    metrics = (await client.get("/metrics")).text
    assert 'hublet_jobs{stage="SCHEDULING"} 1.0' in metrics
    assert 'hublet_jobs{stage="ERROR"} 1.0' in metrics
    assert 'hublet_jobs{stage="RUNNING"} 0.0' in metrics
