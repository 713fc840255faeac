"""Jobs that start by the clock, as the worker starts them."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.clock import micros, now, wire
from hublet.core.database import Database, DatabaseUnavailable
from hublet.jobs.schedules import service
from hublet.jobs.schedules.service import start_due
from jobs.jobs_api import initiator_of
from jobs.log_lines import set_stage
from jobs.schedules_api import PATH, a_schedule, come_due, due_at, jobs_of, reminders, run_due, show
from people import Headers, an_organization, sign_in
from repos.content import put
from repositories import a_repo, disable
from workers import drain


async def status_of(client: httpx2.AsyncClient, ada: Headers, scheduled_id: str) -> Any:
    return (await show(client, ada, scheduled_id))["status"]


async def skipped(client: httpx2.AsyncClient, ada: Headers, scheduled_id: str) -> str:
    """Return why no job began the last time."""
    reason: str = (await status_of(client, ada, scheduled_id))["lastSkip"]["reason"]
    return reason


async def test_a_job_starts_when_it_is_due_and_the_next_time_comes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, spec={"secrets": {"KEY": "hidden"}})
    await run_due(database, scheduled["id"])

    [job_id] = await jobs_of(database, scheduled["id"])
    job = (await client.get(f"/api/jobs/ada/{job_id}", headers=ada)).json()
    assert await initiator_of(database, job_id) == ("scheduled-job", scheduled["id"])
    assert (job["createdBy"]["name"], job["secrets"]) == ("ada", {"KEY": None})
    next_hour = now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    assert await status_of(client, ada, scheduled["id"]) == {
        "lastJob": {"id": job_id, "at": job["createdAt"]},
        "nextJobRunAt": wire(next_hour),
    }


async def test_the_worker_starts_it_at_its_time_and_not_before(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, concurrency=True)
    await drain(database)
    assert await jobs_of(database, scheduled["id"]) == []

    for runs in (1, 2):
        await come_due(database, scheduled["id"])
        await drain(database)
        assert len(await jobs_of(database, scheduled["id"])) == runs
    assert await reminders(database) == 1


async def test_many_workers_start_it_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, concurrency=True)
    due = await come_due(database, scheduled["id"])

    await asyncio.gather(*(start_due(database, scheduled["id"], due_at=due) for _ in range(5)))
    await start_due(database, scheduled["id"], due_at=due)

    assert len(await jobs_of(database, scheduled["id"])) == 1
    assert "lastSkip" not in await status_of(client, ada, scheduled["id"])


async def test_one_job_makes_up_for_all_times_that_were_missed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, concurrency=True)
    due = await come_due(database, scheduled["id"], late=timedelta(hours=7, minutes=5))

    await start_due(database, scheduled["id"], due_at=due)

    assert len(await jobs_of(database, scheduled["id"])) == 1
    assert await due_at(database, scheduled["id"]) == due + 8 * 3_600_000_000


async def test_a_clock_that_was_set_back_brings_no_time_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, concurrency=True)
    due = await come_due(database, scheduled["id"], late=-timedelta(hours=3))

    await start_due(database, scheduled["id"], due_at=due)

    assert await due_at(database, scheduled["id"]) == due + 3_600_000_000


async def test_while_the_last_job_goes_on_a_time_is_skipped_and_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    await run_due(database, scheduled["id"])
    [job_id] = await jobs_of(database, scheduled["id"])
    before = micros()
    await run_due(database, scheduled["id"])

    assert await jobs_of(database, scheduled["id"]) == [job_id]
    status = await status_of(client, ada, scheduled["id"])
    assert status["lastSkip"] == {
        "at": status["lastSkip"]["at"],
        "reason": f"The job {job_id} of this schedule is not over, and concurrency is off: "
        "cancel it, or wait for its end.",
    }
    assert status["lastSkip"]["at"] > wire(before)
    assert status["nextJobRunAt"] > status["lastSkip"]["at"]

    await set_stage(database, job_id, "CANCELED")
    await run_due(database, scheduled["id"])
    assert len(await jobs_of(database, scheduled["id"])) == 2


async def test_a_suspended_one_does_not_start(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    await client.post(f"{PATH}/{scheduled['id']}/suspend", headers=ada)
    await come_due(database, scheduled["id"])
    await drain(database)
    assert await jobs_of(database, scheduled["id"]) == []
    assert await reminders(database) == 0

    await client.post(f"{PATH}/{scheduled['id']}/resume", headers=ada)
    await come_due(database, scheduled["id"])
    await drain(database)
    assert len(await jobs_of(database, scheduled["id"])) == 1


async def test_one_that_begins_suspended_reminds_nobody(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_schedule(client, ada, suspend=True)

    assert await reminders(database) == 0


async def test_times_that_were_changed_count_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    due = await due_at(database, scheduled["id"])
    path = f"{PATH}/{scheduled['id']}/schedule"
    await client.post(path, headers=ada, json={"schedule": "30 * * * *"})
    moved = await due_at(database, scheduled["id"])
    clock.move(timedelta(microseconds=due - micros()))
    await start_due(database, scheduled["id"], due_at=due)
    assert await jobs_of(database, scheduled["id"]) == []

    clock.move(timedelta(hours=1))
    await drain(database)
    assert moved != due
    assert len(await jobs_of(database, scheduled["id"])) == 1


async def test_a_deleted_one_does_not_start(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    due = await come_due(database, scheduled["id"])
    await client.delete(f"{PATH}/{scheduled['id']}", headers=ada)

    await start_due(database, scheduled["id"], due_at=due)

    assert await jobs_of(database, scheduled["id"]) == []


async def test_the_rights_of_its_creator_count_as_they_are_then(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.contributor}
    await an_organization(database, "engines", members=members)
    bob = await sign_in(database, "bob")
    path = "/api/scheduled-jobs/engines"
    scheduled = await a_schedule(client, bob, path=path)
    await client.delete("/api/organizations/engines/members/bob", headers=ada)
    await run_due(database, scheduled["id"])

    shown = (await client.get(f"{path}/{scheduled['id']}", headers=ada)).json()
    reason = "Whoever set this up may not run jobs of this owner any more."
    assert shown["status"]["lastSkip"]["reason"] == reason
    assert await jobs_of(database, scheduled["id"]) == []


async def test_nothing_runs_in_the_name_of_an_account_that_is_off(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    await disable(database, "ada")
    await run_due(database, scheduled["id"])

    assert await jobs_of(database, scheduled["id"]) == []
    async with database.read() as conn:
        reason = await conn.fetch_value("SELECT last_skip_reason FROM scheduled_jobs")
    assert reason == "Whoever set this up has no account on this hub any more."


async def test_each_run_has_its_volumes_as_they_are_then(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, {"a": b"1"})
    volume = {"type": "model", "source": "ada/engine", "mountPath": "/data"}
    scheduled = await a_schedule(client, ada, spec={"volumes": [volume]}, concurrency=True)
    later = await put(database, repo_id, {"a": b"2"})
    await run_due(database, scheduled["id"])

    async with database.read() as conn:
        spec = await conn.fetch_value("SELECT spec FROM jobs")
    assert later in spec
    await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine", "type": "model"}
    )
    await run_due(database, scheduled["id"])
    sentence = "volumes[0]: there is no model ada/engine, or you cannot read it."
    assert await skipped(client, ada, scheduled["id"]) == sentence


async def test_a_failure_of_the_hub_skips_one_time_and_not_all(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduled = await a_schedule(client, ada)

    async def fail(*_: Any) -> None:
        raise ValueError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(service, "check_commits", fail)
        await run_due(database, scheduled["id"])
    reason = "The hub could not start the job; the log of the hub says why."
    assert await skipped(client, ada, scheduled["id"]) == reason

    await run_due(database, scheduled["id"])
    assert len(await jobs_of(database, scheduled["id"])) == 1


async def test_a_database_that_is_away_skips_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduled = await a_schedule(client, ada)
    due = await come_due(database, scheduled["id"])

    async def fail(*_: Any) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(service, "check_commits", fail)
        with pytest.raises(DatabaseUnavailable):
            await start_due(database, scheduled["id"], due_at=due)
    assert await due_at(database, scheduled["id"]) == due

    await start_due(database, scheduled["id"], due_at=due)
    assert len(await jobs_of(database, scheduled["id"])) == 1
