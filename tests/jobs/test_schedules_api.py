"""Jobs that start by the clock, as their owner sets them up."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core import clock
from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.jobs.schedules import service
from jobs.jobs_api import BODY, initiator_of, row_of
from jobs.log_lines import set_stage
from jobs.schedules_api import PATH, a_schedule, due_at, jobs_of, show
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group

ENGINES = "/api/scheduled-jobs/engines"
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/suspend", None),
    ("POST", "/resume", None),
    ("POST", "/schedule", {"schedule": "@daily"}),
    ("PUT", "/labels", {"labels": {}}),
    ("POST", "/run", None),
    ("DELETE", "", None),
]


async def refusal(client: httpx2.AsyncClient, who: Headers, **body: Any) -> tuple[int, Any]:
    asked = {"jobSpec": BODY, "schedule": "@daily"} | body
    response = await client.post(PATH, headers=who, json=asked)
    return response.status_code, response.json().get("error")


def next_hour() -> str:
    return wire(now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))


async def test_a_schedule_that_says_little_is_shown_with_its_defaults(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)

    user = await a_user(database, "ada")
    assert scheduled == {
        "id": scheduled["id"],
        "owner": {"id": user.id, "name": "ada"},
        "jobSpec": {
            "dockerImage": "ubuntu",
            "command": ["true"],
            "environment": {},
            "flavor": "cpu-basic",
            "timeout": 1800,
            "retry": 0,
            "tags": [],
        },
        "createdAt": scheduled["createdAt"],
        "schedule": "@hourly",
        "suspend": False,
        "concurrency": False,
        "status": {"lastJob": None, "nextJobRunAt": next_hour()},
    }
    assert abs(datetime.fromisoformat(scheduled["createdAt"]) - now()) < timedelta(minutes=1)
    assert await show(client, ada, scheduled["id"]) == scheduled
    assert (await client.get(PATH, headers=ada)).json() == [scheduled]


async def test_every_field_comes_back_and_secrets_only_as_names(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    volume = {"type": "model", "source": "ada/engine", "mountPath": "/data", "revision": "main"}
    spec = {
        "arguments": ["-v"],
        "environment": {"AB": "1"},
        "secrets": {"KEY": "hidden"},
        "timeoutSeconds": 60,
        "attempts": 3,
        "labels": {"name": "x", "flag": ""},
        "volumes": [volume],
        "expose": {"ports": [80], "portsPublic": []},
        "ssh": {"enabled": False},
    }
    scheduled = await a_schedule(
        client, ada, spec=spec, schedule="5 4 * * *", concurrency=True, suspend=True
    )

    assert scheduled["jobSpec"] == {
        "dockerImage": "ubuntu",
        "command": ["true"],
        "arguments": ["-v"],
        "environment": {"AB": "1"},
        "secrets": {"KEY": None},
        "flavor": "cpu-basic",
        "timeout": 60,
        "retry": 2,
        "tags": ["name=x", "flag"],
        "volumes": [volume],
        "expose": {"ports": [80], "portsPublic": []},
    }
    told = (scheduled["schedule"], scheduled["concurrency"], scheduled["suspend"])
    assert told == ("5 4 * * *", True, True)
    assert scheduled["status"] == {"lastJob": None, "nextJobRunAt": None}
    assert await show(client, ada, scheduled["id"]) == scheduled
    async with database.read() as conn:
        row = await conn.fetch_one("SELECT spec, sealed_secrets FROM scheduled_jobs")
    assert row is not None
    assert "hidden" not in row["spec"]
    assert b"hidden" not in row["sealed_secrets"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param({"jobSpec": 1}, "jobSpec must be an object.", id="no object"),
        pytest.param({"schedule": 5}, "schedule must be a string.", id="no text"),
        pytest.param(
            {"schedule": "*" * 257}, "schedule must have at most 256 characters.", id="too long"
        ),
        pytest.param(
            {"concurrency": "yes"}, "concurrency must be true or false.", id="no yes or no"
        ),
        pytest.param({"suspend": 1}, "suspend must be true or false.", id="nor a number"),
        pytest.param({"timezone": "x"}, "timezone is not a known field.", id="unknown"),
        pytest.param(
            {"jobSpec": BODY | {"command": []}},
            "jobSpec.command must have at least 1 item(s).",
            id="a job that breaks a rule",
        ),
        pytest.param(
            {"jobSpec": BODY | {"ssh": {"enabled": True}}},
            "jobSpec.ssh: a scheduled job cannot have it.",
            id="a shell",
        ),
        pytest.param(
            {"jobSpec": BODY | {"network": {"group": "g"}}},
            "jobSpec.network: a scheduled job cannot have it.",
            id="a network group",
        ),
        pytest.param(
            {"jobSpec": BODY | {"flavor": "a100x8"}},
            "flavor: this hub does not offer a100x8; it offers cpu-basic.",
            id="a flavor that is not offered",
        ),
        pytest.param(
            {"schedule": "0 0 LW * */6"}, "schedule names a time that never comes.", id="never"
        ),
    ],
)
async def test_what_cannot_be_scheduled(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], sentence: str
) -> None:
    assert await refusal(client, ada, **body) == (400, sentence)


@pytest.mark.parametrize("revision", ["main", "0" * 40])
async def test_volumes_are_looked_at_when_it_is_set_up(
    client: httpx2.AsyncClient, ada: Headers, revision: str
) -> None:
    volume = {"type": "model", "source": "ada/none", "mountPath": "/data", "revision": revision}

    refused = await refusal(client, ada, jobSpec=BODY | {"volumes": [volume]})

    assert refused == (404, "volumes[0]: there is no model ada/none, or you cannot read it.")


async def test_an_owner_has_a_limited_number(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert service.MAX_SCHEDULED_JOBS == 100
    monkeypatch.setattr(service, "MAX_SCHEDULED_JOBS", 2)
    first = await a_schedule(client, ada)
    await a_schedule(client, ada)

    sentence = "ada has 2 scheduled jobs, which is the most there may be: delete one first."
    assert await refusal(client, ada) == (409, sentence)
    await client.delete(f"{PATH}/{first['id']}", headers=ada)
    await a_schedule(client, ada)


async def test_the_number_holds_when_several_come_at_once(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SCHEDULED_JOBS", 1)

    answers = await asyncio.gather(*(refusal(client, ada) for _ in range(3)))

    assert sorted(status for status, _ in answers) == [200, 409, 409]


async def test_they_are_listed_newest_first_and_by_label(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    both = await a_schedule(client, ada, spec={"labels": {"name": "x", "flag": ""}})
    one = await a_schedule(client, ada, spec={"labels": {"name": "x"}})

    async def found(query: str) -> list[str]:
        listed = (await client.get(f"{PATH}?{query}", headers=ada)).json()
        return [each["id"] for each in listed]

    assert await found("") == [one["id"], both["id"]]
    assert await found("label=name=x") == [one["id"], both["id"]]
    assert await found("label=name=x&label=flag=") == [both["id"]]
    assert await found("label=name=x&label=name=y") == []
    wrong = await client.get(f"{PATH}?label=flag", headers=ada)
    assert (wrong.status_code, wrong.json()) == (400, {"error": "label is written key=value."})


async def test_suspending_and_resuming(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    path = f"{PATH}/{scheduled['id']}"

    suspended = await client.post(f"{path}/suspend", headers=ada)
    assert suspended.json() == scheduled | {
        "suspend": True,
        "status": {"lastJob": None, "nextJobRunAt": None},
    }
    assert await show(client, ada, scheduled["id"]) == suspended.json()
    clock.move(timedelta(hours=5))
    resumed = await client.post(f"{path}/resume", headers=ada)
    status = {"lastJob": None, "nextJobRunAt": next_hour()}
    assert resumed.json() == scheduled | {"status": status}


async def test_its_times_may_be_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    path = f"{PATH}/{scheduled['id']}/schedule"

    changed = await client.post(path, headers=ada, json={"schedule": "0 0 1 1 *"})
    next_year = f"{now().year + 1}-01-01T00:00:00.000Z"
    assert changed.json() == scheduled | {
        "schedule": "0 0 1 1 *",
        "status": {"lastJob": None, "nextJobRunAt": next_year},
    }
    wrong = await client.post(path, headers=ada, json={"schedule": "* * * * * *"})
    assert wrong.status_code == 400
    assert await show(client, ada, scheduled["id"]) == changed.json()


async def test_its_labels_may_be_replaced(client: httpx2.AsyncClient, ada: Headers) -> None:
    scheduled = await a_schedule(client, ada, spec={"labels": {"name": "x", "flag": ""}})
    path = f"{PATH}/{scheduled['id']}"

    changed = await client.put(f"{path}/labels", headers=ada, json={"labels": {"name": "y"}})
    assert changed.json()["jobSpec"]["tags"] == ["name=y"]
    assert await show(client, ada, scheduled["id"]) == changed.json()
    job = (await client.post(f"{path}/run", headers=ada)).json()
    assert job["tags"] == ["name=y"]


async def test_a_deleted_one_is_gone_and_its_jobs_stay(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    path = f"{PATH}/{scheduled['id']}"
    job = (await client.post(f"{path}/run", headers=ada)).json()

    assert (await client.delete(path, headers=ada)).json() == {}
    sentence = f"There is no scheduled job {scheduled['id']}, or you cannot see it."
    for method, what, body in [("GET", "", None), *CHANGES]:
        response = await client.request(method, path + what, headers=ada, json=body)
        assert (response.status_code, response.json()) == (404, {"error": sentence})
    assert await jobs_of(database, scheduled["id"]) == [job["id"]]


async def test_it_can_be_run_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(
        client, ada, spec={"secrets": {"KEY": "hidden"}, "timeoutSeconds": 60, "attempts": 2}
    )
    due = await due_at(database, scheduled["id"])

    job = (await client.post(f"{PATH}/{scheduled['id']}/run", headers=ada)).json()

    assert await initiator_of(database, job["id"]) == ("scheduled-job", scheduled["id"])
    assert job["status"] == {"stage": "SCHEDULING", "message": "queued", "failureCount": 0}
    assert (job["secrets"], job["timeout"], job["retry"]) == ({"KEY": None}, 60, 1)
    assert (await row_of(database, job["id"]))["sealed_secrets"] is not None
    status = (await show(client, ada, scheduled["id"]))["status"]
    assert status["lastJob"] == {"id": job["id"], "at": job["createdAt"]}
    assert await due_at(database, scheduled["id"]) == due


async def test_one_that_is_suspended_can_be_run_all_the_same(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada, suspend=True)

    response = await client.post(f"{PATH}/{scheduled['id']}/run", headers=ada)

    assert response.status_code == 200


async def test_one_at_a_time_unless_it_says_otherwise(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    path = f"{PATH}/{scheduled['id']}/run"
    job_id = (await client.post(path, headers=ada)).json()["id"]
    sentence = (
        f"The job {job_id} of this schedule is not over, and concurrency is off: "
        "cancel it, or wait for its end."
    )

    for stage in ("SCHEDULING", "RUNNING"):
        await set_stage(database, job_id, stage)
        refused = await client.post(path, headers=ada)
        assert (refused.status_code, refused.json()) == (409, {"error": sentence})
    await set_stage(database, job_id, "ERROR")
    assert (await client.post(path, headers=ada)).status_code == 200

    beside = await a_schedule(client, ada, concurrency=True)
    for _ in range(2):
        response = await client.post(f"{PATH}/{beside['id']}/run", headers=ada)
        assert response.status_code == 200


async def test_of_several_at_once_one_runs(client: httpx2.AsyncClient, ada: Headers) -> None:
    path = f"{PATH}/{(await a_schedule(client, ada))['id']}/run"

    answers = await asyncio.gather(*(client.post(path, headers=ada) for _ in range(3)))

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409]


async def test_nobody_else_knows_of_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    bob = await sign_in(database, "bob")

    sentence = {"error": f"There is no scheduled job {scheduled['id']}, or you cannot see it."}
    for namespace in ("ada", "bob", "nobody"):
        path = f"/api/scheduled-jobs/{namespace}/{scheduled['id']}"
        for method, what, body in [("GET", "", None), *CHANGES]:
            response = await client.request(method, path + what, headers=bob, json=body)
            assert (response.status_code, response.json()) == (404, sentence)
    listed = await client.get(PATH, headers=bob)
    assert listed.status_code == 404
    assert listed.json() == {"error": "ada is neither you nor one of your organizations."}


async def test_a_token_needs_the_scope_jobs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    scheduled = await a_schedule(client, ada)
    without = await sign_in(database, "ada", scopes=["webhooks"])

    for path in (PATH, f"{PATH}/{scheduled['id']}"):
        response = await client.get(path, headers=without)
        sentence = {"error": "The token lacks the scope jobs."}
        assert (response.status_code, response.json()) == (403, sentence)


@pytest.mark.parametrize(
    ("role", "creator", "status"),
    [
        pytest.param(Role.read, "ada", 403, id="readers change nothing"),
        pytest.param(Role.contributor, "ada", 403, id="contributors nothing of others"),
        pytest.param(Role.contributor, "bob", 200, id="but their own"),
        pytest.param(Role.write, "ada", 200, id="writers change all"),
    ],
)
async def test_the_role_in_the_organization_decides_what_may_be_changed(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    role: Role,
    creator: str,
    status: int,
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": role})
    bob = await sign_in(database, "bob")
    scheduled = await a_schedule(client, {"ada": ada, "bob": bob}[creator], path=ENGINES)
    path = f"{ENGINES}/{scheduled['id']}"

    assert (await client.get(path, headers=bob)).json() == scheduled
    for method, what, body in CHANGES:
        response = await client.request(method, path + what, headers=bob, json=body)
        assert response.status_code == status, response.text
        if status == 403:
            sentence = "This needs the role write in the organization engines."
            assert response.json() == {"error": sentence}


async def test_readers_of_an_organization_schedule_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.read})

    response = await client.post(ENGINES, headers=ada, json={"jobSpec": BODY, "schedule": "@daily"})

    sentence = {"error": "This needs the role contributor in the organization engines."}
    assert (response.status_code, response.json()) == (403, sentence)


async def test_in_a_resource_group_the_role_there_decides(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.write, "eve": Role.read}
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members=members
    )
    group = await a_resource_group(database, organization, members={"eve": Role.contributor})
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")

    spec = {"resourceGroupId": group.id}
    scheduled = await a_schedule(client, eve, path=ENGINES, spec=spec)

    assert scheduled["jobSpec"]["resourceGroupId"] == group.id
    path = f"{ENGINES}/{scheduled['id']}"
    for who, listed, status in ((ada, [scheduled], 200), (eve, [scheduled], 200), (bob, [], 404)):
        assert (await client.get(ENGINES, headers=who)).json() == listed
        assert (await client.get(path, headers=who)).status_code == status
        assert (await client.post(f"{path}/resume", headers=who)).status_code == status
    job = (await client.post(f"{path}/run", headers=eve)).json()
    assert job["resourceGroupId"] == group.id
