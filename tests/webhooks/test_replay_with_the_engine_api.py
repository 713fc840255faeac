"""Replays, recoveries and pings, carried by the real engine to a real receiver."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.clock import wire
from hublet.core.database import Database
from outgoing_servers import Stranger
from people import Headers
from repositories import a_repo
from webhooks.engine_rows import delivering, lane_of, set_webhooks, settle, states_of
from webhooks.event_streams import open_stream
from webhooks.receivers import answer, in_turn, receiving
from webhooks.recorded_deliveries import as_the_public_client_reads
from webhooks.webhook_calls import PATH, create, update


@pytest.fixture(autouse=True)
def loopback_may_be_reached(database: Database) -> None:
    set_webhooks(database)


@pytest.fixture
async def receiver() -> AsyncIterator[Stranger]:
    async with receiving(in_turn(answer(500), answer(202))) as receiver:
        yield receiver


async def post(client: httpx2.AsyncClient, who: Headers, path: str, **body: Any) -> Any:
    response = await client.post(f"{PATH}/{path}", headers=who, json=body or None)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_ping_is_what_the_public_receiver_takes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, receiver: Stranger
) -> None:
    webhook_id = (await create(client, ada, url=receiver.url, secret="s"))["id"]
    await post(client, ada, f"{webhook_id}/disable")
    async with delivering(database):
        first = await post(client, ada, f"{webhook_id}/ping")
        second = await post(client, ada, f"{webhook_id}/ping")

    assert (first["status"], second["status"]) == (500, 202)
    assert await states_of(database, webhook_id) == [("failed", None), ("delivered", None)]
    request = receiver.requests[0]
    payload = as_the_public_client_reads(json.loads(request.body))
    assert (payload.event.scope, payload.webhook.id) == ("ping", webhook_id)
    assert request.headers["x-webhook-secret"] == "s"
    assert request.headers["webhook-id"] == first["deliveryId"]


async def test_a_replay_goes_under_the_same_id_to_where_the_webhook_points_now(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with receiving() as old, receiving() as new, delivering(database) as deliverer:
        webhook_id = (await create(client, ada, url=old.url, secret="a"))["id"]
        await a_repo(client, ada, "ada/engine")
        await settle(deliverer)
        [item] = (await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)).json()
        await update(client, ada, webhook_id, url=new.url, secret="b")

        answered = await post(client, ada, f"{webhook_id}/replay/{item['id']}")

    [before], [after] = old.requests, new.requests
    assert answered == {"deliveryId": item["id"], "status": 200}
    assert before.headers["webhook-id"] == after.headers["webhook-id"] == item["id"]
    assert before.body == after.body
    assert after.headers["x-webhook-secret"] == "b"
    response = await client.get(f"{PATH}/{webhook_id}/deliveries/{item['id']}", headers=ada)
    assert [each["target"] for each in response.json()["attemptLog"]] == [
        old.url,
        new.url,
    ]


async def test_a_replay_goes_also_where_only_probes_go_and_finds_the_target_repaired(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    answers = in_turn(answer(200), *[answer(500)] * 4, answer(201))
    async with receiving(answers) as receiver, delivering(database) as deliverer:
        webhook_id = (await create(client, ada, url=receiver.url))["id"]
        for name in ("zero", "one", "two", "three", "four"):
            await a_repo(client, ada, f"ada/{name}")
            await settle(deliverer)
        degraded = (await lane_of(database, webhook_id))["degraded_since"]
        *_, first = (await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)).json()

        answered = await post(client, ada, f"{webhook_id}/replay/{first['id']}")
        await settle(deliverer)

    assert degraded is not None
    assert answered == {"deliveryId": first["id"], "status": 201}
    assert (await lane_of(database, webhook_id))["degraded_since"] is None


async def test_what_was_over_the_limit_is_recovered_beside_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with receiving() as receiver, delivering(database, daily_triggers=1) as deliverer:
        webhook = await create(client, ada, url=receiver.url)
        for name in ("one", "two", "three"):
            await a_repo(client, ada, f"ada/{name}")
        await settle(deliverer)
        before = await states_of(database, webhook["id"])

        answered = await post(client, ada, f"{webhook['id']}/recover", since=wire(0))
        await settle(deliverer)

        assert answered == {"count": 2}
        assert before == [("delivered", None), ("unsent", "throttled"), ("unsent", "throttled")]
        assert await states_of(database, webhook["id"]) == [("delivered", None)] * 3
        assert (await lane_of(database, webhook["id"]))["day_count"] == 3


async def test_a_listener_hears_what_the_engine_does(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, receiver: Stranger
) -> None:
    webhook_id = (await create(client, ada, url=receiver.url))["id"]
    path = f"{PATH}/{webhook_id}/deliveries/stream"
    async with open_stream(app, path, ada) as listener, delivering(database):
        await listener.block()
        await a_repo(client, ada, "ada/engine")
        received = await listener.delivery()
        while not received["attempts"]:
            received = await listener.delivery()

    assert (received["state"], received["status"], received["lastAttempt"]["status"]) == (
        "pending",
        500,
        500,
    )
