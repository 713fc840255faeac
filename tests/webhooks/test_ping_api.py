"""A ping shows whether a webhook's target answers."""

import asyncio
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.webhooks.activity import service
from hublet.webhooks.records import DELIVERIES_CHANNEL
from patience import SOON_SECONDS
from people import Headers, a_user, an_organization, sign_in
from repositories import a_push, a_repo
from webhooks.recorded_deliveries import an_attempt, as_the_public_client_reads
from webhooks.watchers import list_triggered
from webhooks.webhook_calls import PATH, create


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an attempt."""
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.0)


async def ping(client: httpx2.AsyncClient, who: Headers, webhook_id: str) -> tuple[int, Any]:
    response = await client.post(f"{PATH}/{webhook_id}/ping", headers=who)
    return response.status_code, response.json()


async def sent(client: httpx2.AsyncClient, who: Headers, webhook_id: str) -> Any:
    """Ping a webhook; return the payload."""
    _, answer = await ping(client, who, webhook_id)
    path = f"{PATH}/{webhook_id}/deliveries/{answer['deliveryId']}"
    payload = (await client.get(path, headers=who)).json()["payload"]
    # The public client's own receiver must take it.
    as_the_public_client_reads(payload)
    return payload


def watching(type: str, name: str) -> dict[str, Any]:  # noqa: A002 - the interface's word
    return {"watched": [{"type": type, "name": name}]}


async def test_a_ping_answers_with_the_status_of_its_only_attempt(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada))["id"]
    with database.subscribe(DELIVERIES_CHANNEL) as bell:
        answer = asyncio.ensure_future(ping(client, ada, webhook_id))
        assert await bell.wait(timeout=SOON_SECONDS)
    [item] = (await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)).json()

    await an_attempt(database, item["id"], status=418, state="failed")

    assert await answer == (200, {"deliveryId": item["id"], "status": 418})
    assert item == {
        "id": item["id"],
        "state": "pending",
        "event": {
            "id": item["event"]["id"],
            "scope": "ping",
            "action": "update",
            "repo": {"type": "model", "name": "ada/ping"},
            "createdAt": item["createdAt"],
        },
        "attempts": 0,
        "ping": True,
        "createdAt": item["createdAt"],
        "nextAttemptAt": item["nextAttemptAt"],
    }


@pytest.mark.usefixtures("impatient")
async def test_it_is_about_the_watched_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", type="dataset", private=True)
    head = await a_push(database, repo_id, {"a.txt": b"cogs"})
    webhook_id = (await create(client, ada, **watching("dataset", "ada/engine")))["id"]

    assert await sent(client, ada, webhook_id) == {
        "event": {"action": "update", "scope": "ping"},
        "repo": {
            "type": "dataset",
            "name": "ada/engine",
            "id": repo_id,
            "private": True,
            "url": {
                "web": "http://hub.test/datasets/ada/engine",
                "api": "http://hub.test/api/datasets/ada/engine",
            },
            "owner": {"id": (await a_user(database, "ada")).id},
            "tags": [],
            "headSha": head,
        },
        "webhook": {"id": webhook_id, "version": 3},
    }


@pytest.mark.usefixtures("impatient")
async def test_of_a_watched_account_it_is_about_the_newest_that_the_receiver_knows(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/old")
    await a_repo(client, ada, "ada/new", type="space")
    # The public client's receiver takes no buckets.
    await a_repo(client, ada, "ada/pail", type="bucket")
    webhook_id = (await create(client, ada))["id"]

    payload = await sent(client, ada, webhook_id)

    assert (payload["repo"]["type"], payload["repo"]["name"]) == ("space", "ada/new")


@pytest.mark.usefixtures("impatient")
async def test_what_the_owner_cannot_see_is_passed_over(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/open")
    await a_repo(client, bob, "bob/secret", private=True)
    webhook_id = (await create(client, ada, **watching("user", "bob")))["id"]

    assert (await sent(client, ada, webhook_id))["repo"]["name"] == "bob/open"


@pytest.mark.usefixtures("impatient")
async def test_a_repository_that_became_private_is_not_told_of(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    repo_id = await a_repo(client, bob, "bob/engine")
    webhook_id = (await create(client, ada, **watching("model", "bob/engine")))["id"]
    settings = "/api/models/bob/engine/settings"
    assert (await client.put(settings, headers=bob, json={"private": True})).status_code == 200

    repo = (await sent(client, ada, webhook_id))["repo"]

    assert repo["id"] != repo_id
    assert repo == {
        "type": "model",
        "name": "bob/engine",
        "id": repo["id"],
        "private": False,
        "url": {
            "web": "http://hub.test/bob/engine",
            "api": "http://hub.test/api/models/bob/engine",
        },
        "owner": {"id": repo["owner"]["id"]},
        "tags": [],
    }


@pytest.mark.usefixtures("impatient")
async def test_the_next_watched_item_stands_in_for_one_that_is_gone(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/mill")
    watched = [{"type": "model", "name": "ada/engine"}, {"type": "model", "name": "ada/mill"}]
    webhook_id = (await create(client, ada, watched=watched))["id"]
    gone = await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"}
    )
    assert gone.status_code == 200

    assert (await sent(client, ada, webhook_id))["repo"]["name"] == "ada/mill"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("state", ["disabled", "suspended-after-failure"])
async def test_a_ping_goes_also_while_the_webhook_is_off(
    client: httpx2.AsyncClient, database: Database, ada: Headers, state: str
) -> None:
    webhook_id = (await create(client, ada))["id"]
    async with database.transaction() as conn:
        await conn.execute("UPDATE webhooks SET state = $1", state)

    status, answer = await ping(client, ada, webhook_id)

    assert (status, answer["reason"]) == (200, "waiting")
    assert await list_triggered(database, webhook_id) == [
        {"scope": "ping", "action": "update", "state": "fresh", "reason": None}
    ]


@pytest.mark.usefixtures("impatient")
async def test_every_ping_is_a_delivery_of_its_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada))["id"]

    await ping(client, ada, webhook_id)
    await ping(client, ada, webhook_id)

    assert len(await list_triggered(database, webhook_id)) == 2


async def test_somebody_elses_webhook_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada))["id"]
    bob = await sign_in(database, "bob")

    assert await ping(client, bob, webhook_id) == (
        404,
        {"error": f"There is no webhook {webhook_id}."},
    )


@pytest.mark.usefixtures("impatient")
async def test_an_organizations_ping_shows_what_the_organization_sees(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    await a_repo(client, ada, "engines/secret", private=True)
    path = "/api/organizations/engines/settings/webhooks"
    webhook_id = (await create(client, ada, path=path, **watching("org", "engines")))["id"]

    answer = (await client.post(f"{path}/{webhook_id}/ping", headers=ada)).json()

    response = await client.get(
        f"{path}/{webhook_id}/deliveries/{answer['deliveryId']}", headers=ada
    )
    assert response.json()["payload"]["repo"]["name"] == "engines/secret"
