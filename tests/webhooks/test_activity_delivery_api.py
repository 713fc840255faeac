"""One delivery in full."""

from typing import Any

import httpx2
import pytest

from hublet.core.clock import wire
from hublet.core.database import Database
from people import Headers, sign_in
from webhooks.recorded_deliveries import SECOND, a_delivery, an_attempt
from webhooks.webhook_calls import IMAGE_JOB, PATH, create

THEN = 1_790_000_000 * SECOND


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada, secret="s3cret"))["id"]
    return webhook_id


async def show(
    client: httpx2.AsyncClient, who: Headers, webhook_id: str, delivery_id: str
) -> tuple[int, Any]:
    path = f"{PATH}/{webhook_id}/deliveries/{delivery_id}"
    response = await client.get(path, headers=who)
    return response.status_code, response.json()


async def test_who_had_no_access_is_not_told_what_happened(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(
        database, webhook_id, at=THEN, state="unsent", reason="no-access", finished_at=THEN
    )
    masked = {
        "id": delivery_id,
        "state": "unsent",
        "reason": "no-access",
        "attempts": 0,
        "createdAt": wire(THEN),
        "finishedAt": wire(THEN),
    }

    status, body = await show(client, ada, webhook_id, delivery_id)
    listed = await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)
    by_scope = await client.get(
        f"{PATH}/{webhook_id}/deliveries", headers=ada, params={"scope": "repo.content"}
    )
    by_repo = await client.get(
        f"{PATH}/{webhook_id}/deliveries", headers=ada, params={"repo": "ada/engine"}
    )
    again = await client.post(f"{PATH}/{webhook_id}/replay/{delivery_id}", headers=ada)

    assert (status, body) == (200, masked | {"headers": body["headers"], "attemptLog": []})
    assert listed.json() == [masked]
    assert (by_scope.json(), by_repo.json()) == ([], [])
    assert (again.status_code, again.json()) == (
        409,
        {
            "error": (
                "What happened while the webhook's owner could not see the repository is never "
                "sent."
            )
        },
    )


async def test_everything_about_a_delivery_is_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    payload = '{"event":{"action":"update","scope":"repo.content"},"repo":{"name":"ada/engine"}}'
    delivery_id = await a_delivery(database, webhook_id, at=THEN, event={"payload": payload})
    await an_attempt(
        database,
        delivery_id,
        started_at=THEN + SECOND,
        status=None,
        reason="timeout",
        detail="No answer within 15 seconds.",
        dns_micros=1250,
        connect_micros=2500,
        tls_micros=3000,
        total_micros=15_000_000,
        state="pending",
    )
    await an_attempt(
        database,
        delivery_id,
        number=2,
        started_at=THEN + 6 * SECOND,
        first_byte_micros=900,
        response=b"tha\xffnk\x00s",
    )

    status, body = await show(client, ada, webhook_id, delivery_id)

    assert status == 200
    assert body == {
        "id": delivery_id,
        "state": "delivered",
        "event": {
            "id": body["event"]["id"],
            "scope": "repo.content",
            "action": "update",
            "repo": {"type": "model", "name": "ada/engine"},
            "createdAt": wire(THEN),
        },
        "attempts": 2,
        "status": 200,
        "createdAt": wire(THEN),
        "finishedAt": body["finishedAt"],
        "payload": {
            "event": {"action": "update", "scope": "repo.content"},
            "repo": {"name": "ada/engine"},
            "webhook": {"id": webhook_id, "version": 3},
        },
        "headers": {
            "content-type": "application/json",
            "webhook-id": delivery_id,
            "webhook-timestamp": str(THEN // SECOND + 6),
            "X-Webhook-Attempt": "2",
            "webhook-signature": "(set)",
            "X-Webhook-Secret": "(set)",
        },
        "attemptLog": [
            {
                "number": 1,
                "startedAt": wire(THEN + SECOND),
                "target": "https://example.com/hook",
                "reason": "timeout",
                "detail": "No answer within 15 seconds.",
                "durations": {"dns": 1.25, "connect": 2.5, "tls": 3, "total": 15000},
                "response": "",
            },
            {
                "number": 2,
                "startedAt": wire(THEN + 6 * SECOND),
                "target": "https://example.com/hook",
                "status": 200,
                "durations": {"firstByte": 0.9, "total": 1.5},
                "response": "tha\N{REPLACEMENT CHARACTER}nks",
            },
        ],
    }


async def test_before_the_first_attempt_the_headers_are_told_as_far_as_they_are_known(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada))["id"]
    delivery_id = await a_delivery(database, webhook_id, state="fresh")

    _, body = await show(client, ada, webhook_id, delivery_id)

    assert (body["attemptLog"], body["headers"]) == (
        [],
        {
            "content-type": "application/json",
            "webhook-id": delivery_id,
            "X-Webhook-Attempt": "1",
        },
    )


async def test_what_started_a_job_has_no_headers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada, job=IMAGE_JOB))["id"]
    delivery_id = await a_delivery(database, webhook_id)
    await an_attempt(database, delivery_id, target=None, job_id="c" * 24, status=None)

    _, body = await show(client, ada, webhook_id, delivery_id)

    [attempt] = body["attemptLog"]
    assert body["headers"] == {}
    assert attempt == {
        "number": 1,
        "startedAt": attempt["startedAt"],
        "jobId": "c" * 24,
        "durations": {"total": 1.5},
        "response": "",
    }


async def test_a_payload_may_hold_what_no_request_may(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id, event={"payload": r'{"tag":"a\u0000b"}'})

    status, body = await show(client, ada, webhook_id, delivery_id)

    assert (status, body["payload"]["tag"]) == (200, "a\x00b")


async def test_a_delivery_is_found_only_at_its_own_webhook(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    other = (await create(client, ada))["id"]
    delivery_id = await a_delivery(database, other)

    assert await show(client, ada, webhook_id, delivery_id) == (
        404,
        {"error": f"The webhook has no delivery {delivery_id}."},
    )


async def test_somebody_elses_delivery_is_not_found(
    client: httpx2.AsyncClient, database: Database, webhook_id: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id)
    bob = await sign_in(database, "bob")

    assert await show(client, bob, webhook_id, delivery_id) == (
        404,
        {"error": f"There is no webhook {webhook_id}."},
    )
