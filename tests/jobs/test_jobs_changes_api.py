"""What an owner may change about a job, and what becomes of it then."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.events import JobEnded
from jobs.jobs_api import PATH, Capable, initiator_of, row_of, run, set_row, show
from outbox_events import published_events
from patience import SOON_SECONDS
from people import Headers
from workers import drain

FINISHED = 1_700_000_000_000_000
OVER = ["COMPLETED", "ERROR", "CANCELED"]


async def post(client: httpx2.AsyncClient, who: Headers, job_id: str, what: str) -> httpx2.Response:
    return await client.post(f"{PATH}/{job_id}/{what}", headers=who)


async def put(
    client: httpx2.AsyncClient, who: Headers, job_id: str, what: str, body: Any
) -> httpx2.Response:
    return await client.put(f"{PATH}/{job_id}/{what}", headers=who, json=body)


def still(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job without what grows by itself."""
    return {name: value for name, value in job.items() if name != "durations"}


async def test_cancelling_asks_for_the_end_and_wakes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    await set_row(database, job["id"], stage="RUNNING", due_at=2**60)
    with database.subscribe("jobs") as bell:
        response = await post(client, ada, job["id"], "cancel")
        assert await bell.wait(timeout=SOON_SECONDS)

    assert response.status_code == 200
    assert response.json()["status"]["stage"] == "RUNNING"
    row = await row_of(database, job["id"])
    assert row["cancel_requested_at"] == row["due_at"] <= micros()
    # The first wish counts for how long the end may take; the second only wakes again.
    await post(client, ada, job["id"], "cancel")
    again = await row_of(database, job["id"])
    assert again["cancel_requested_at"] == row["cancel_requested_at"]


@pytest.mark.parametrize("stage", OVER)
async def test_cancelling_what_is_over_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: str
) -> None:
    job = await run(client, ada)
    await set_row(database, job["id"], stage=stage, due_at=None)

    response = await post(client, ada, job["id"], "cancel")

    assert (response.status_code, response.json()["status"]["stage"]) == (200, stage)
    row = await row_of(database, job["id"])
    assert (row["cancel_requested_at"], row["due_at"]) == (None, None)


async def test_a_copy_has_all_of_the_job_and_its_secrets(
    client: httpx2.AsyncClient, database: Database, ada: Headers, app: FastAPI
) -> None:
    app.state.jobs = Capable(database.hub.settings)
    job = await run(
        client,
        ada,
        arguments=[],
        environment={"AB": "1"},
        secrets={"KEY": "hidden"},
        timeoutSeconds=60,
        attempts=2,
        labels={"name": "x"},
        expose={"ports": [80, 81], "portsPublic": [81]},
        ssh={"enabled": True},
        network={"group": "g", "aliases": ["a"]},
    )
    await set_row(database, job["id"], stage="RUNNING", message=None, attempt=2, failure_count=1)

    response = await post(client, ada, job["id"], "duplicate")

    assert response.status_code == 200
    copy = response.json()
    own = {"id", "createdAt", "durations", "status"}
    assert {name: value for name, value in copy.items() if name not in own} == {
        name: value for name, value in job.items() if name not in own
    }
    assert await initiator_of(database, copy["id"]) == ("duplicated-job", job["id"])
    assert copy["status"] == {
        "stage": "SCHEDULING",
        "message": "queued",
        "failureCount": 0,
        "exposeUrls": [f"http://{copy['id']}--{port}.jobs.localhost" for port in (80, 81)],
        "sshUrl": f"ssh://{copy['id']}@ssh.jobs.localhost:2222",
    }
    sealed = [(await row_of(database, each["id"]))["sealed_secrets"] for each in (job, copy)]
    opened = [
        database.hub.keys.open(value, context=f"jobs.secrets:{each['id']}")
        for value, each in zip(sealed, (job, copy), strict=True)
    ]
    assert opened == [b'{"KEY":"hidden"}'] * 2


async def test_a_job_whose_secrets_are_gone_is_not_copied(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada, secrets={"KEY": "hidden"})
    await set_row(database, job["id"], stage="COMPLETED", sealed_secrets=None)

    response = await post(client, ada, job["id"], "duplicate")

    assert response.status_code == 409
    assert response.json()["error"] == (
        f"The secrets of the job {job['id']} are gone: run it anew, with its secrets."
    )


async def test_labels_are_replaced_as_a_whole_and_found_by(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada, labels={"name": "x", "old": "1"})
    await set_row(database, job["id"], stage="COMPLETED")

    response = await put(client, ada, job["id"], "labels", {"labels": {"name": "y", "new": ""}})

    assert response.status_code == 200
    assert response.json()["tags"] == ["name=y", "new"]
    assert (await show(client, ada, job["id"]))["tags"] == ["name=y", "new"]
    for query, count in (("label=old=1", 0), ("label=name=y&label=new=", 1)):
        found = await client.get(f"{PATH}/count?{query}", headers=ada)
        assert found.json() == {"count": count}
    cleared = await put(client, ada, job["id"], "labels", {"labels": {}})
    assert cleared.json()["tags"] == []


async def test_ports_are_replaced_and_closed(client: httpx2.AsyncClient, ada: Headers) -> None:
    job = await run(client, ada, expose={"ports": [1]})
    assert job["expose"] == {"ports": [1], "portsPublic": []}

    body = {"ports": [9000, 80], "portsPublic": [80]}
    opened = (await put(client, ada, job["id"], "expose", body)).json()
    assert opened["expose"] == body
    assert opened["status"]["exposeUrls"] == [
        f"http://{job['id']}--9000.jobs.localhost",
        f"http://{job['id']}--80.jobs.localhost",
    ]
    assert still(await show(client, ada, job["id"])) == still(opened)

    await put(client, ada, job["id"], "expose", {"ports": [], "portsPublic": []})
    closed = await show(client, ada, job["id"])
    assert "expose" not in closed
    assert "exposeUrls" not in closed["status"]


async def test_ports_of_a_job_that_is_over_stay(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    await set_row(database, job["id"], stage="ERROR")

    response = await put(client, ada, job["id"], "expose", {"ports": [80]})

    assert response.status_code == 409
    assert response.json()["error"] == (
        f"The job {job['id']} is over: its ports cannot be opened any more."
    )


@pytest.mark.parametrize("stage", OVER)
async def test_deleting_removes_what_it_left_and_keeps_the_record(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: str
) -> None:
    job = await run(client, ada, secrets={"KEY": "hidden"})
    await set_row(database, job["id"], stage=stage, message="why", finished_at=FINISHED)
    data_dir = database.hub.settings.database.data_dir
    folder = Path(data_dir) / "jobs" / job["id"][:2] / job["id"]
    (folder / "attempt-1").mkdir(parents=True)
    (folder / "log").write_text("1 hello\n")

    response = await client.delete(f"{PATH}/{job['id']}", headers=ada)

    assert (response.status_code, response.json()) == (200, {})
    row = await row_of(database, job["id"])
    assert (row["stage"], row["sealed_secrets"], row["version"]) == ("DELETED", None, 2)
    shown = await show(client, ada, job["id"])
    assert shown["status"] == {"stage": "DELETED", "message": "why", "failureCount": 0}
    assert shown["finishedAt"] == wire(FINISHED)
    # That it ended was told when it did.
    assert await published_events(database, JobEnded) == []
    await drain(database)
    assert not folder.exists()
    assert folder.parent.exists()


async def test_a_job_that_goes_on_is_not_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)

    response = await client.delete(f"{PATH}/{job['id']}", headers=ada)

    assert response.status_code == 409
    assert response.json()["error"] == (
        f"The job {job['id']} is not over: cancel it before you delete it."
    )
    assert (await row_of(database, job["id"]))["stage"] == "SCHEDULING"


@pytest.mark.parametrize(
    ("method", "what", "body"),
    [
        ("POST", "/cancel", None),
        ("POST", "/duplicate", None),
        ("PUT", "/labels", {"labels": {}}),
        ("PUT", "/expose", {"ports": []}),
        ("DELETE", "", None),
    ],
)
async def test_nothing_is_changed_about_a_deleted_job(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, what: str, body: Any
) -> None:
    job = await run(client, ada)
    await set_row(database, job["id"], stage="DELETED")

    response = await client.request(method, f"{PATH}/{job['id']}{what}", headers=ada, json=body)

    assert response.status_code == 409
    assert response.json()["error"] == f"The job {job['id']} was deleted."
