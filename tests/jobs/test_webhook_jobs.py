"""Jobs that webhooks start: exactly one for a delivery, with what the webhook adds."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.jobs import service as seals
from hublet.jobs.webhook_jobs import WebhookStart, start
from hublet.tokens.delegations import Delegation
from jobs.jobs_api import initiator_of, row_of, run, set_row, show
from people import Headers, a_user, an_organization, sign_in
from repos.content import put
from repositories import a_repo, disable
from webhooks.engine_rows import delivering, settle
from webhooks.webhook_calls import create as create_webhook

JOB = {
    "dockerImage": "ubuntu",
    "flavor": "cpu-basic",
    "command": ["env"],
    "environment": {"A1": "x"},
}
ADDED = {
    "WEBHOOK_PAYLOAD": '{"event":{}}',
    "WEBHOOK_REPO_ID": "ada/engine",
    "WEBHOOK_REPO_TYPE": "model",
    "WEBHOOK_ID": "d1",
    "WEBHOOK_SECRET": "s3cret",
}


async def asked(database: Database, **changes: Any) -> WebhookStart:
    """A start of a job of ada's; name only what the test is about."""
    user = await a_user(database, "ada")
    defaults: dict[str, Any] = {
        "webhook_id": "a" * 24,
        "owner_id": user.id,
        "delegation": Delegation(user_id=user.id),
        "key": "d1",
        "job": None if "source_id" in changes else JOB,
        "environment": ADDED,
        "secrets": {"KEY": "of the webhook"},
    }
    return WebhookStart(**(defaults | changes))


async def refused(database: Database, start_asked: WebhookStart) -> tuple[int, str]:
    with pytest.raises(HubError) as refusal:
        await start(database, start_asked)
    return refusal.value.status, refusal.value.message


async def secrets_of(database: Database, job_id: str) -> dict[str, str]:
    sealed = (await row_of(database, job_id))["sealed_secrets"]
    return seals.unseal_secrets(database.hub.keys, job_id, sealed)


async def count(database: Database) -> int:
    async with database.read() as conn:
        found: int = await conn.fetch_value("SELECT count(*) FROM jobs")
    return found


async def test_the_job_has_what_the_webhook_says_and_adds(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await start(database, await asked(database))

    job = await show(client, ada, job_id)
    assert await initiator_of(database, job_id) == ("webhook", "a" * 24)
    assert (job["dockerImage"], job["command"]) == ("ubuntu", ["env"])
    assert job["environment"] == {
        "A1": "x",
        "WEBHOOK_REPO_ID": "ada/engine",
        "WEBHOOK_REPO_TYPE": "model",
        "WEBHOOK_ID": "d1",
    }
    assert job["secrets"] == {"KEY": None, "WEBHOOK_PAYLOAD": None, "WEBHOOK_SECRET": None}
    assert await secrets_of(database, job_id) == {
        "KEY": "of the webhook",
        "WEBHOOK_PAYLOAD": '{"event":{}}',
        "WEBHOOK_SECRET": "s3cret",
    }


async def test_nothing_takes_the_place_of_the_payload(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = JOB | {"environment": {"WEBHOOK_ID": "forged"}}
    forged = await asked(database, job=job, secrets={"WEBHOOK_PAYLOAD": "forged"})
    job_id = await start(database, forged)

    assert (await show(client, ada, job_id))["environment"]["WEBHOOK_ID"] == "d1"
    assert (await secrets_of(database, job_id))["WEBHOOK_PAYLOAD"] == '{"event":{}}'


async def test_a_delivery_starts_one_job_however_often_it_is_tried(database: Database) -> None:
    first = await start(database, await asked(database))
    assert await start(database, await asked(database)) == first
    # What was wrong meanwhile does not matter to a job that was started.
    await disable(database, "ada")
    assert await start(database, await asked(database)) == first
    assert await count(database) == 1


async def test_two_workers_with_the_same_delivery_start_one_job(database: Database) -> None:
    both = await asked(database)
    started: Sequence[str] = await asyncio.gather(*(start(database, both) for _ in range(4)))
    assert len(set(started)) == 1
    assert await count(database) == 1


async def test_of_a_source_neither_secrets_nor_volumes_are_taken(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await put(database, await a_repo(client, ada, "ada/engine"), {"a": b"1"})
    source = await run(
        client,
        ada,
        arguments=["-v"],
        environment={"AB": "1"},
        secrets={"OWN": "of the source"},
        timeoutSeconds=60,
        attempts=2,
        labels={"name": "x"},
        volumes=[{"type": "model", "source": "ada/engine", "mountPath": "/data"}],
    )
    await set_row(database, source["id"], stage="COMPLETED", sealed_secrets=None)

    job_id = await start(database, await asked(database, source_id=source["id"]))

    job = await show(client, ada, job_id)
    same = ["dockerImage", "command", "arguments", "flavor", "timeout", "retry", "tags", "owner"]
    assert {name: job[name] for name in same} == {name: source[name] for name in same}
    assert "volumes" not in job
    assert job["environment"]["AB"] == "1"
    assert sorted(await secrets_of(database, job_id)) == [
        "KEY",
        "WEBHOOK_PAYLOAD",
        "WEBHOOK_SECRET",
    ]


async def test_of_a_space_and_an_image_it_is_the_space_that_runs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/app", type="space")

    job_id = await start(database, await asked(database, job=JOB | {"spaceId": "ada/app"}))

    job = await show(client, ada, job_id)
    assert (job["spaceId"], "dockerImage" in job) == ("ada/app", False)


async def test_a_source_of_others_or_a_deleted_one_starts_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    of_bob = await run(client, bob, path="/api/jobs/bob")
    deleted = await run(client, ada)
    await set_row(database, deleted["id"], stage="DELETED")

    for job_id in (of_bob["id"], deleted["id"], "0" * 24):
        sentence = f"jobSourceId: there is no job {job_id} of this owner."
        assert await refused(database, await asked(database, source_id=job_id)) == (404, sentence)


async def test_the_rights_of_the_creator_count_as_they_are_now(database: Database) -> None:
    members = {"ada": Role.admin, "bob": Role.contributor}
    engines = await an_organization(database, "engines", members=members)
    bob = await a_user(database, "bob")

    def by_bob(key: str) -> Any:
        return asked(database, owner_id=engines.id, delegation=Delegation(user_id=bob.id), key=key)

    await start(database, await by_bob("d1"))
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, engines, bob, Role.read)
    sentence = "This needs the role contributor in the organization engines."
    assert await refused(database, await by_bob("d2")) == (403, sentence)
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, bob)
    sentence = "Whoever set this up may not run jobs of this owner any more."
    assert await refused(database, await by_bob("d3")) == (403, sentence)
    await disable(database, "bob")
    sentence = "Whoever set this up has no account on this hub any more."
    assert await refused(database, await by_bob("d4")) == (403, sentence)
    assert await count(database) == 1


async def test_what_the_hub_does_not_offer_is_refused_with_the_reason(database: Database) -> None:
    status, sentence = await refused(database, await asked(database, job=JOB | {"flavor": "h200"}))
    assert status == 400
    assert sentence.startswith("flavor: this hub does not offer h200;")


async def test_a_commit_that_is_gone_is_refused_before_anything_is_kept(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await put(database, await a_repo(client, ada, "ada/engine"), {"a": b"1"})
    volume = {"type": "model", "source": "ada/engine", "mountPath": "/d", "revision": "f" * 40}

    found = await refused(database, await asked(database, job=JOB | {"volumes": [volume]}))

    assert found == (404, f"volumes[0]: ada/engine has no revision {'f' * 40}.")
    assert await count(database) == 0


async def test_a_change_starts_the_job_of_its_webhook(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    webhook = await create_webhook(
        client, ada, job=JOB, watched=[{"type": "model", "name": "ada/engine"}], domains=["repo"]
    )
    async with delivering(database) as deliverer:
        await put(database, repo_id, {"a": b"1"})
        await settle(deliverer)

    [job] = (await client.get("/api/jobs/ada", headers=ada)).json()
    assert await initiator_of(database, job["id"]) == ("webhook", webhook["id"])
    payload = json.loads((await secrets_of(database, job["id"]))["WEBHOOK_PAYLOAD"])
    assert payload["repo"]["name"] == "ada/engine"
