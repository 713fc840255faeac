"""Jobs that webhooks start: how they are shown, and what is kept of them."""

import json
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from people import Headers, an_organization
from repositories import a_repo, a_resource_group
from webhooks.webhook_calls import (
    IMAGE_JOB,
    JOB_ID,
    PATH,
    URL,
    WATCHED,
    a_source_job,
    create,
    refusal,
    show,
    update,
)

EVERYTHING = IMAGE_JOB | {
    "arguments": ["-v"],
    "command": ["sh", "-c", "true"],
    "environment": {"AB": "1"},
    "secrets": {"KEY": "v", "B": "w"},
    "timeoutSeconds": 60,
    "attempts": 3,
    "labels": {"name": "x"},
    "volumes": [{"type": "bucket", "source": "ada/box", "mountPath": "/data"}],
    "expose": {"ports": [80], "portsPublic": [80]},
    "ssh": {"enabled": False},
    "network": {"group": "g", "aliases": ["a"]},
}


@pytest.fixture(autouse=True)
async def _source_job(database: Database) -> None:
    await a_source_job(database)


async def stored_job(database: Database, webhook_id: str) -> Any:
    async with database.read() as conn:
        found = await conn.fetch_value("SELECT job FROM webhooks WHERE id = $1", webhook_id)
    return found and json.loads(found)


async def test_a_job_is_shown_with_the_fields_of_the_interface_and_kept_whole(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")

    webhook = await create(client, ada, job=EVERYTHING)

    assert webhook["job"] == {
        "arguments": ["-v"],
        "command": ["sh", "-c", "true"],
        "environment": {"AB": "1"},
        "flavor": "cpu-basic",
        "timeoutSeconds": 60,
        "labels": {"name": "x"},
        "dockerImage": "ubuntu",
        "secrets": ["KEY", "B"],
    }
    assert "url" not in webhook
    assert await show(client, ada, webhook["id"]) == webhook
    kept = {name: value for name, value in EVERYTHING.items() if name != "secrets"}
    assert await stored_job(database, webhook["id"]) == kept


@pytest.mark.parametrize(
    "job",
    [
        pytest.param({"spaceId": "ada/app"}, id="a space"),
        pytest.param({"dockerImage": "ubuntu"}, id="an image"),
        pytest.param({"spaceId": "ada/app", "dockerImage": "ubuntu"}, id="both"),
    ],
)
async def test_a_job_that_says_little_is_shown_with_its_defaults(
    client: httpx2.AsyncClient, ada: Headers, job: dict[str, str]
) -> None:
    await a_repo(client, ada, "ada/app", type="space")

    webhook = await create(client, ada, job=job | {"flavor": "cpu-basic"})

    assert webhook["job"] == {
        "environment": {},
        "flavor": "cpu-basic",
        "timeoutSeconds": None,
        **job,
    }


async def test_another_job_takes_the_place_of_the_whole_old_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    await a_repo(client, ada, "ada/app", type="space")
    webhook = await create(client, ada, job=EVERYTHING)

    job = {"spaceId": "ada/app", "flavor": "cpu-basic"}
    after = await update(client, ada, webhook["id"], job=job)

    # Secrets cannot be read back, so they stay until they are taken away one by one.
    assert after["job"] == {
        "environment": {},
        "flavor": "cpu-basic",
        "timeoutSeconds": None,
        "spaceId": "ada/app",
        "secrets": ["KEY", "B"],
    }
    assert await stored_job(database, webhook["id"]) == {
        "environment": {},
        "flavor": "cpu-basic",
        "timeoutSeconds": None,
        "attempts": 1,
        "spaceId": "ada/app",
    }


async def test_each_kind_of_target_takes_the_place_of_any_other(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    targets: list[dict[str, Any]] = [
        {"url": URL},
        {"job": IMAGE_JOB},
        {"jobSourceId": JOB_ID},
        {"url": URL},
        {"jobSourceId": JOB_ID},
        {"job": IMAGE_JOB},
        {"url": URL},
    ]
    webhook = await create(client, ada)

    for target in targets:
        after = await update(client, ada, webhook["id"], **target)
        assert {"url", "job", "jobSourceId"} & after.keys() == target.keys()


async def test_a_source_is_a_job_of_the_same_owner_that_is_not_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    of_bob, deleted = "b" * 24, "d" * 24
    await a_source_job(database, job_id=of_bob, owner="bob")
    await a_source_job(database, job_id=deleted)
    async with database.transaction() as conn:
        await conn.execute("UPDATE jobs SET stage = 'DELETED' WHERE id = $1", deleted)
    webhook = await create(client, ada, jobSourceId=JOB_ID)

    for job_id in (of_bob, deleted, "e" * 24):
        sentence = f"jobSourceId: there is no job {job_id} of this owner."
        body = {"watched": WATCHED, "domains": ["repo"], "jobSourceId": job_id}
        assert await refusal(client, ada, body) == (404, sentence)
        path = f"{PATH}/{webhook['id']}"
        assert await refusal(client, ada, {"jobSourceId": job_id}, path=path) == (404, sentence)
    assert await show(client, ada, webhook["id"]) == webhook


async def test_a_webhook_keeps_its_source_when_that_is_deleted_until_it_has_another_target(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID)
    async with database.transaction() as conn:
        await conn.execute("UPDATE jobs SET stage = 'DELETED'")

    path = f"{PATH}/{webhook['id']}"
    sentence = f"jobSourceId: there is no job {JOB_ID} of this owner."
    assert await refusal(client, ada, {"domains": ["repo"]}, path=path) == (404, sentence)
    assert await show(client, ada, webhook["id"]) == webhook
    assert (await update(client, ada, webhook["id"], url=URL))["url"] == URL


async def sentences(
    client: httpx2.AsyncClient, who: Headers, job: dict[str, Any], *, owner: str
) -> set[tuple[int, str]]:
    """Return how a job is refused: run at once, by the clock, and by a webhook."""
    path = PATH if owner == "ada" else f"/api/organizations/{owner}/settings/webhooks"
    webhook = {"watched": WATCHED, "domains": ["repo"], "job": job}
    scheduled = {"schedule": "@daily", "jobSpec": job}
    return {
        await refusal(client, who, job, path=f"/api/jobs/{owner}"),
        await refusal(client, who, scheduled, path=f"/api/scheduled-jobs/{owner}"),
        await refusal(client, who, webhook, path=path),
    }


async def test_a_flavor_that_is_not_offered_is_refused_in_the_same_words_everywhere(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    job = IMAGE_JOB | {"flavor": "h200"}
    sentence = "flavor: this hub does not offer h200; it offers cpu-basic."
    assert await sentences(client, ada, job, owner="ada") == {(400, sentence)}


async def test_a_resource_group_that_is_not_the_organizations_is_refused_everywhere(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engines = await an_organization(database, "engines", members={"ada": Role.admin})
    others = await an_organization(database, "others", members={"ada": Role.admin})
    own = await a_resource_group(database, engines)
    of_others = await a_resource_group(database, others)

    for group_id in ("f" * 24, of_others.id):
        job = IMAGE_JOB | {"resourceGroupId": group_id}
        sentence = f"resourceGroupId: engines has no resource group {group_id}."
        assert await sentences(client, ada, job, owner="engines") == {(404, sentence)}
    job = IMAGE_JOB | {"resourceGroupId": own.id}
    assert await sentences(client, ada, job, owner="engines") == {(200, None)}
    for_users = "resourceGroupId: only organizations have resource groups."
    assert await sentences(client, ada, job, owner="ada") == {(400, for_users)}
