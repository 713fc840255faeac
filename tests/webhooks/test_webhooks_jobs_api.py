"""Jobs that webhooks start: how they are shown, and what is kept of them."""

import json
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers
from webhooks.managing import IMAGE_JOB, JOB_ID, URL, create, show, update

EVERYTHING = IMAGE_JOB | {
    "arguments": ["-v"],
    "command": ["sh", "-c", "true"],
    "environment": {"AB": "1"},
    "secrets": {"KEY": "v", "B": "w"},
    "arch": "arm64",
    "timeoutSeconds": 60,
    "attempts": 3,
    "labels": {"name": "x"},
    "volumes": [{"type": "bucket", "source": "ada/box", "mountPath": "/data"}],
    "expose": {"ports": [80], "portsPublic": [80]},
    "ssh": {"enabled": True},
    "network": {"group": "g", "aliases": ["a"]},
    "resourceGroupId": JOB_ID,
}


async def stored_job(database: Database, webhook_id: str) -> Any:
    async with database.read() as conn:
        found = await conn.fetch_value("SELECT job FROM webhooks WHERE id = $1", webhook_id)
    return found and json.loads(found)


async def test_a_job_is_shown_with_the_fields_of_the_interface_and_kept_whole(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
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
    webhook = await create(client, ada, job=job | {"flavor": "h200x8"})

    assert webhook["job"] == {
        "environment": {},
        "flavor": "h200x8",
        "timeoutSeconds": None,
        **job,
    }


async def test_another_job_takes_the_place_of_the_whole_old_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, job=EVERYTHING)

    after = await update(client, ada, webhook["id"], job={"spaceId": "a/b", "flavor": "h200"})

    # Secrets cannot be read back, so they stay until they are taken away one by one.
    assert after["job"] == {
        "environment": {},
        "flavor": "h200",
        "timeoutSeconds": None,
        "spaceId": "a/b",
        "secrets": ["KEY", "B"],
    }
    assert await stored_job(database, webhook["id"]) == {
        "environment": {},
        "flavor": "h200",
        "timeoutSeconds": None,
        "attempts": 1,
        "spaceId": "a/b",
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
