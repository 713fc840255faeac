"""A delivery is sent again, and somebody waits for what comes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.webhooks.activity import service
from hublet.webhooks.records import DELIVERIES_CHANNEL
from patience import SOON_SECONDS
from people import Headers, an_organization, sign_in
from scratch_database import wait_until
from webhooks.recorded_deliveries import DAY, SECOND, a_delivery, an_attempt, delivery_row
from webhooks.webhook_calls import PATH, create


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada))["id"]
    return webhook_id


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an attempt."""
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.0)


async def replay(
    client: httpx2.AsyncClient, who: Headers, webhook_id: str, delivery_id: str
) -> tuple[int, Any]:
    response = await client.post(f"{PATH}/{webhook_id}/replay/{delivery_id}", headers=who)
    return response.status_code, response.json()


async def while_waiting(
    database: Database,
    delivery_id: str,
    request: Awaitable[tuple[int, Any]],
    then: Callable[[], Awaitable[Any]],
) -> tuple[int, Any]:
    """Send a request, do something when the delivery is due again, return the answer."""
    answer = asyncio.ensure_future(request)

    async def is_due() -> bool:
        return (await delivery_row(database, delivery_id))["state"] == "pending" or answer.done()

    await wait_until(is_due)
    await then()
    return await answer


@pytest.mark.parametrize("state", ["delivered", "failed", "unsent"])
async def test_a_replay_answers_with_the_status_of_the_new_attempt(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str, state: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id, state=state, tries=11)
    await an_attempt(database, delivery_id, status=500, state=state)

    answer = await while_waiting(
        database,
        delivery_id,
        replay(client, ada, webhook_id, delivery_id),
        lambda: an_attempt(database, delivery_id, number=2, status=202),
    )

    assert answer == (200, {"deliveryId": delivery_id, "status": 202})


@pytest.mark.usefixtures("impatient")
async def test_a_replay_begins_the_schedule_anew_and_wakes_the_engine(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
) -> None:
    delivery_id = await a_delivery(
        database, webhook_id, state="failed", reason="exhausted", tries=11, attempts=11
    )
    with database.subscribe(DELIVERIES_CHANNEL) as bell:
        answer = await replay(client, ada, webhook_id, delivery_id)

        assert await bell.wait(timeout=SOON_SECONDS)
    assert answer == (200, {"deliveryId": delivery_id, "status": 0, "reason": "waiting"})
    assert await delivery_row(database, delivery_id) == {
        "state": "pending",
        "reason": None,
        "tries": 0,
        "attempts": 11,
        "claimed_by": None,
        "finished_at": None,
    }
    assert await lane_is_due(database, webhook_id)


async def lane_is_due(database: Database, webhook_id: str) -> bool:
    async with database.read() as conn:
        due = await conn.fetch_value(
            "SELECT next_due_at FROM webhook_lanes WHERE webhook_id = $1", webhook_id
        )
    return due is not None and due <= micros()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("next_due_at", "expected"),
    [
        pytest.param(None, "now", id="a lane that waits for nothing is looked at"),
        pytest.param(micros() + DAY, "now", id="a lane that waits is looked at earlier"),
        pytest.param(1, "as planned", id="a lane that is due stays due for as long"),
    ],
)
async def test_the_lane_is_looked_at_now(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    next_due_at: int | None,
    expected: str,
) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO webhook_lanes (webhook_id, next_due_at, day_count) VALUES ($1, $2, 7)",
            webhook_id, next_due_at,
        )  # fmt: skip

    await replay(client, ada, webhook_id, await a_delivery(database, webhook_id))

    async with database.read() as conn:
        row = await conn.fetch_one("SELECT next_due_at, day_count FROM webhook_lanes")
    assert row is not None
    assert row["day_count"] == 7
    assert ("as planned" if row["next_due_at"] == 1 else "now") == expected
    assert row["next_due_at"] <= micros()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("waiting_since", "goes_first"),
    [
        pytest.param(-3600 * SECOND, True, id="of an hour ago"),
        pytest.param(3600 * SECOND, True, id="in an hour"),
        pytest.param(-3 * DAY, False, id="of days ago, which is about to be given up"),
    ],
)
async def test_a_replay_goes_before_what_is_due(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    waiting_since: int,
    goes_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    waiting = await a_delivery(
        database, webhook_id, state="pending", due_at=micros() + waiting_since
    )
    delivery_id = await a_delivery(database, webhook_id)

    await replay(client, ada, webhook_id, delivery_id)

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT id, due_at FROM webhook_deliveries ORDER BY due_at")
    order = [row["id"] for row in rows]
    assert order == ([delivery_id, waiting] if goes_first else [waiting, delivery_id])
    assert {row["id"]: row["due_at"] for row in rows}[delivery_id] <= micros()


async def test_no_answer_from_the_target_is_status_zero_with_the_reason(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id)

    answer = await while_waiting(
        database,
        delivery_id,
        replay(client, ada, webhook_id, delivery_id),
        lambda: an_attempt(
            database, delivery_id, status=None, reason="connect-failed", state="pending"
        ),
    )

    assert answer == (
        200,
        {"deliveryId": delivery_id, "status": 0, "reason": "connect-failed"},
    )


async def test_a_job_that_was_started_is_named(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id)

    answer = await while_waiting(
        database,
        delivery_id,
        replay(client, ada, webhook_id, delivery_id),
        lambda: an_attempt(database, delivery_id, status=None, target=None, job_id="c" * 24),
    )

    assert answer == (200, {"deliveryId": delivery_id, "status": 0, "jobId": "c" * 24})


async def test_a_replay_that_may_not_be_sent_says_why(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(database, webhook_id)

    async def refuse() -> None:
        async with database.transaction() as conn:
            await conn.execute(
                "UPDATE webhook_deliveries SET state = 'unsent', reason = 'no-access'"
            )
            conn.wake("webhook-attempts")

    answer = await while_waiting(
        database, delivery_id, replay(client, ada, webhook_id, delivery_id), refuse
    )

    assert answer == (200, {"deliveryId": delivery_id, "status": 0, "reason": "no-access"})


async def test_who_waits_for_a_webhook_that_is_deleted_hears_of_it(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "_POLL_SECONDS", 0.05)
    delivery_id = await a_delivery(database, webhook_id)

    answer = await while_waiting(
        database,
        delivery_id,
        replay(client, ada, webhook_id, delivery_id),
        lambda: client.delete(f"{PATH}/{webhook_id}", headers=ada),
    )

    assert answer == (200, {"deliveryId": delivery_id, "status": 0, "reason": "deleted"})


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param(
            {"state": "pending"},
            "The delivery is still to be tried again; only one that has ended can be replayed.",
            id="pending",
        ),
        pytest.param(
            {"state": "fresh"},
            "The delivery is still to be tried again; only one that has ended can be replayed.",
            id="fresh",
        ),
        pytest.param(
            {"state": "pending", "claimed_by": "w" * 24},
            "The delivery is being sent right now; only one that has ended can be replayed.",
            id="being sent",
        ),
    ],
)
async def test_what_has_not_ended_is_not_replayed(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    row: dict[str, Any],
    sentence: str,
) -> None:
    delivery_id = await a_delivery(database, webhook_id, tries=3, **row)

    assert await replay(client, ada, webhook_id, delivery_id) == (409, {"error": sentence})
    assert (await delivery_row(database, delivery_id))["tries"] == 3


@pytest.mark.parametrize(
    ("state", "word"),
    [("disabled", "disabled"), ("suspended-after-failure", "suspended after failures")],
)
async def test_a_webhook_that_is_not_enabled_replays_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    state: str,
    word: str,
) -> None:
    delivery_id = await a_delivery(database, webhook_id)
    async with database.transaction() as conn:
        await conn.execute("UPDATE webhooks SET state = $1", state)

    assert await replay(client, ada, webhook_id, delivery_id) == (
        409,
        {"error": f"The webhook is {word}, so nothing is sent again; enable it first."},
    )
    assert (await delivery_row(database, delivery_id))["state"] == "delivered"


async def test_only_the_webhooks_own_deliveries_are_replayed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    other = (await create(client, ada))["id"]
    delivery_id = await a_delivery(database, other)
    bob = await sign_in(database, "bob")

    assert await replay(client, ada, webhook_id, delivery_id) == (
        404,
        {"error": f"The webhook has no delivery {delivery_id}."},
    )
    assert await replay(client, bob, other, delivery_id) == (
        404,
        {"error": f"There is no webhook {other}."},
    )


@pytest.mark.usefixtures("impatient")
async def test_an_administrator_replays_for_the_organization(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    path = "/api/organizations/engines/settings/webhooks"
    webhook_id = (await create(client, ada, path=path))["id"]
    delivery_id = await a_delivery(database, webhook_id)

    response = await client.post(f"{path}/{webhook_id}/replay/{delivery_id}", headers=ada)

    assert response.json() == {"deliveryId": delivery_id, "status": 0, "reason": "waiting"}
