"""The deliveries of a webhook as they come and change."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from contract.checker import Contract
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.app import with_edge
from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.core.http.server_protocol import ZeroCopyProtocol
from hublet.description import describe
from hublet.webhooks.activity import stream
from hublet.webhooks.records import DELIVERIES_CHANNEL
from patience import SOON_SECONDS
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo
from webhooks.event_streams import StreamClient, open_stream
from webhooks.recorded_deliveries import SECOND, a_delivery, an_attempt, id_at
from webhooks.webhook_calls import PATH, create
from workers import drain

ORGANIZATIONS = "/api/organizations/engines/settings/webhooks"


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada))["id"]
    return webhook_id


@pytest.fixture
def path(webhook_id: str) -> str:
    return f"{PATH}/{webhook_id}/deliveries/stream"


async def wake(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE facts SET value = value")
        conn.wake(DELIVERIES_CHANNEL)


async def states(listener: StreamClient, count: int) -> list[tuple[str, str, int]]:
    received = [await listener.delivery() for _ in range(count)]
    return [(each["id"], each["state"], each["attempts"]) for each in received]


async def test_the_first_line_comes_at_once(app: FastAPI, ada: Headers, path: str) -> None:
    before = micros()
    async with open_stream(app, path, ada) as listener:
        first = await listener.block()

    assert first is not None
    assert before <= int(first["id"]) <= micros()
    assert first == {"": "listening", "retry": "1000", "id": first["id"]}
    assert listener.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (listener.headers["cache-control"], listener.headers["x-accel-buffering"]) == (
        "no-store",
        "no",
    )


async def test_the_description_tells_of_the_stream(app: FastAPI, ada: Headers, path: str) -> None:
    contract = Contract(describe(app, base_url="http://hub.test"))
    async with open_stream(app, path, ada) as listener:
        pass

    contract.check(
        method="GET",
        path=path,
        status=listener.status,
        headers=listener.headers,
        body=b": listening",
    )


async def test_what_happens_is_sent_with_its_payload(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers, webhook_id: str, path: str
) -> None:
    async with open_stream(app, path, ada) as listener:
        repo_id = await a_repo(client, ada, "ada/engine")
        received = await listener.delivery()

    assert received == {
        "id": received["id"],
        "state": "pending",
        "event": {
            "id": received["event"]["id"],
            "scope": "repo",
            "action": "create",
            "repo": {"type": "model", "name": "ada/engine"},
            "createdAt": received["createdAt"],
        },
        "attempts": 0,
        "createdAt": received["createdAt"],
        "nextAttemptAt": received["nextAttemptAt"],
        "payload": received["payload"],
    }
    assert received["payload"]["repo"]["id"] == repo_id
    assert received["payload"]["webhook"] == {"id": webhook_id, "version": 3}


async def test_an_attempt_is_sent_with_its_answer(
    app: FastAPI, database: Database, ada: Headers, webhook_id: str, path: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id, state="pending")
    async with open_stream(app, path, ada) as listener:
        await an_attempt(database, delivery_id, status=500, reason="refused", state="pending")
        first = await listener.delivery()
        await an_attempt(database, delivery_id, number=2, response=b"thanks", started_at=5 * SECOND)
        second = await listener.delivery()

    assert (first["state"], first["attempts"], first["lastAttempt"]["status"]) == (
        "pending",
        1,
        500,
    )
    assert second["state"] == "delivered"
    assert second["lastAttempt"] == {
        "number": 2,
        "startedAt": wire(5 * SECOND),
        "target": "https://example.com/hook",
        "status": 200,
        "durations": {"total": 1.5},
        "response": "thanks",
    }


async def test_nothing_is_sent_twice_and_nothing_of_before(
    app: FastAPI, database: Database, ada: Headers, webhook_id: str, path: str
) -> None:
    await a_delivery(database, webhook_id)
    async with open_stream(app, path, ada) as listener:
        new = await a_delivery(database, webhook_id)
        await wake(database)
        assert await states(listener, 1) == [(new, "delivered", 0)]
        await wake(database)
        assert await listener.receives_nothing()


async def test_what_was_not_claimed_yet_becomes_pending_without_an_event(
    app: FastAPI, database: Database, ada: Headers, webhook_id: str, path: str
) -> None:
    await a_delivery(database, webhook_id, state="fresh")
    async with open_stream(app, path, ada) as listener:
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhook_deliveries SET state = 'pending'")
            conn.wake(DELIVERIES_CHANNEL)

        assert await listener.receives_nothing()


async def test_what_is_committed_late_is_not_skipped(
    app: FastAPI,
    database: Database,
    ada: Headers,
    webhook_id: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So that a slow machine cannot make the late one too old to be looked for.
    monkeypatch.setattr(stream, "LOOK_BACK", 3600 * SECOND)
    earlier = micros() - 10 * SECOND
    async with open_stream(app, path, ada) as listener:
        for _ in range(stream.NEWEST + 1):
            await a_delivery(database, webhook_id, at=micros())
        await wake(database)
        for _ in range(stream.NEWEST + 1):
            await listener.delivery()
        # Its id was made before those of all the others.
        late = await a_delivery(database, webhook_id, id=id_at(earlier))
        await wake(database)

        assert await states(listener, 1) == [(late, "delivered", 0)]


async def test_an_old_delivery_that_is_replayed_is_sent(
    app: FastAPI,
    database: Database,
    ada: Headers,
    webhook_id: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "NEWEST", 2)
    long_ago = micros() - 3600 * SECOND
    old = await a_delivery(database, webhook_id, at=long_ago)
    for n in range(1, 5):
        await a_delivery(database, webhook_id, at=long_ago + n * SECOND)
    async with open_stream(app, path, ada) as listener:
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhook_deliveries SET state = 'pending' WHERE id = $1", old)
            conn.wake(DELIVERIES_CHANNEL)
        assert await states(listener, 1) == [(old, "pending", 0)]
        # While it is sent nobody else may take it, and it is still watched.
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhook_deliveries SET claimed_by = 'w' WHERE id = $1", old)
            conn.wake(DELIVERIES_CHANNEL)
        assert await listener.receives_nothing()
        await an_attempt(database, old)
        assert await states(listener, 1) == [(old, "delivered", 1)]


async def test_who_comes_back_gets_what_was_missed(
    app: FastAPI, database: Database, ada: Headers, webhook_id: str, path: str
) -> None:
    left_at = micros() - 100 * SECOND
    before, during = left_at - 50 * SECOND, left_at + 50 * SECOND
    await a_delivery(database, webhook_id, at=before)
    tried = await a_delivery(database, webhook_id, at=before, state="pending")
    await an_attempt(database, tried, started_at=during, state="pending")
    await a_delivery(database, webhook_id, at=before, state="pending")
    ended = await a_delivery(database, webhook_id, at=before, finished_at=during)
    came = await a_delivery(database, webhook_id, at=during)
    async with open_stream(app, path, ada, since=str(left_at)) as listener:
        received = await states(listener, 3)
        assert await listener.receives_nothing()

    assert sorted(received) == sorted(
        [(tried, "pending", 1), (ended, "delivered", 0), (came, "delivered", 0)]
    )


async def test_who_was_away_for_long_gets_more_than_the_newest(
    app: FastAPI,
    database: Database,
    ada: Headers,
    webhook_id: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "NEWEST", 2)
    left_at = micros() - 100 * SECOND
    made = [await a_delivery(database, webhook_id, at=left_at + n * SECOND) for n in range(1, 6)]
    async with open_stream(app, path, ada, since=str(left_at)) as listener:
        assert [each for each, _, _ in await states(listener, 5)] == made


@pytest.mark.parametrize("since", ["x", "-1", "1" * 17])
async def test_a_position_of_somebodys_own_is_refused(
    client: httpx2.AsyncClient, ada: Headers, path: str, since: str
) -> None:
    response = await client.get(path, headers=ada | {"Last-Event-ID": since})

    assert (response.status_code, response.json()) == (
        400,
        {"error": "Last-Event-ID must match ^[0-9]{1,16}$."},
    )


async def test_other_webhooks_are_not_sent(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, path: str
) -> None:
    other = (await create(client, ada))["id"]
    async with open_stream(app, path, ada) as listener:
        await a_delivery(database, other)
        await wake(database)

        assert await listener.receives_nothing()


async def test_somebody_elses_webhook_is_not_found(
    client: httpx2.AsyncClient, database: Database, webhook_id: str, path: str
) -> None:
    bob = await sign_in(database, "bob")

    response = await client.get(path, headers=bob)

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"There is no webhook {webhook_id}."},
    )


async def test_head_does_not_wait_for_an_end(app: FastAPI, ada: Headers, path: str) -> None:
    async with open_stream(app, path, ada, method="HEAD") as listener:
        assert await listener.block() is None
    assert listener.status == 200


async def test_silence_is_broken_now_and_then(
    app: FastAPI, ada: Headers, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.3)
    async with open_stream(app, path, ada) as listener:
        first, second = await listener.block(), await listener.block()

    assert first is not None
    assert second is not None
    assert second == {"": "still listening", "id": second["id"]}
    assert int(second["id"]) > int(first["id"])


async def test_the_stream_ends_when_the_webhook_is_deleted(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers, webhook_id: str, path: str
) -> None:
    async with open_stream(app, path, ada) as listener:
        await listener.block()
        await client.delete(f"{PATH}/{webhook_id}", headers=ada)

        assert await listener.block() is None


async def test_the_stream_ends_when_the_token_is_revoked(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.2)
    token = ada["Authorization"].removeprefix("Bearer ")
    async with open_stream(app, path, ada) as listener:
        await listener.block()
        await client.post("/api/credentials/revoke", json={"credentials": [token]})
        await drain(database)

        assert await listener.ends()


async def test_the_stream_ends_for_who_is_no_administrator_any_more(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.2)
    engines = await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": Role.admin}
    )
    webhook_id = (await create(client, ada, path=ORGANIZATIONS))["id"]
    async with open_stream(app, f"{ORGANIZATIONS}/{webhook_id}/deliveries/stream", ada) as listener:
        assert await listener.block() is not None
        assert await listener.block() is not None
        async with database.transaction() as conn:
            await organizations.set_member(
                conn, OPERATOR, engines, await a_user(database, "ada"), Role.write
            )

        assert await listener.ends()


async def test_many_commits_are_taken_together(
    app: FastAPI, database: Database, ada: Headers, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    changes = stream.DeliveryListener.changes

    async def counted(listener: stream.DeliveryListener) -> Any:
        looks.append(micros())
        return await changes(listener)

    monkeypatch.setattr(stream.DeliveryListener, "changes", counted)
    async with open_stream(app, path, ada) as listener:
        await listener.block()
        for _ in range(40):
            await wake(database)
            await asyncio.sleep(0.01)

    seconds = (looks[-1] - looks[0]) / SECOND
    assert len(looks) <= seconds / 0.2 + 2


async def test_a_hub_that_stops_ends_the_stream_and_needs_not_wait(
    app: FastAPI, database: Database, ada: Headers, webhook_id: str, path: str
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            with_edge(app), http=ZeroCopyProtocol, lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with (
                asyncio.timeout(SOON_SECONDS),
                httpx2.AsyncClient(base_url=address, trust_env=False) as client,
                client.stream("GET", path, headers=ada) as response,
            ):
                lines = response.aiter_lines()
                assert await anext(lines) == ": listening"
                await a_delivery(database, webhook_id)
                await wake(database)
                while not (await anext(lines)).startswith("data: {"):
                    pass
                server.should_exit = True
                with suppress(StopAsyncIteration):
                    while True:
                        await anext(lines)
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, SOON_SECONDS)
