"""Everything that failed or was not sent since a time goes again."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core import queue
from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.webhooks.activity import service
from hublet.webhooks.records import DELIVERIES_CHANNEL
from patience import SOON_SECONDS
from people import Headers, an_organization, sign_in
from webhooks.recorded_deliveries import DAY, SECOND, a_delivery, delivery_row
from webhooks.webhook_calls import PATH, create

THEN = 1_790_000_000 * SECOND


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada))["id"]
    return webhook_id


async def recover(
    client: httpx2.AsyncClient, who: Headers, webhook_id: str, body: Any = None
) -> tuple[int, Any]:
    body = {"since": wire(THEN)} if body is None else body
    response = await client.post(f"{PATH}/{webhook_id}/recover", headers=who, json=body)
    return response.status_code, response.json()


async def states(database: Database) -> list[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT state FROM webhook_deliveries ORDER BY id")
    return [row["state"] for row in rows]


@pytest.mark.parametrize(
    ("row", "goes_again"),
    [
        pytest.param({"state": "failed", "reason": "exhausted"}, True, id="failed"),
        pytest.param({"state": "unsent", "reason": "disabled"}, True, id="disabled then"),
        pytest.param(
            {"state": "unsent", "reason": "suspended-after-failure"}, True, id="suspended then"
        ),
        pytest.param({"state": "unsent", "reason": "throttled"}, True, id="over the limit"),
        pytest.param({"state": "unsent", "reason": "no-access"}, False, id="no access: never sent"),
        pytest.param({"state": "delivered"}, False, id="arrived"),
        pytest.param({"state": "pending"}, False, id="tried again anyway"),
        pytest.param({"state": "fresh"}, False, id="not tried yet"),
        pytest.param({"state": "failed", "ping": True}, False, id="a ping"),
    ],
)
async def test_what_did_not_arrive_goes_again(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    row: dict[str, Any],
    goes_again: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    delivery_id = await a_delivery(database, webhook_id, at=THEN, tries=4, attempts=4, **row)
    before = await delivery_row(database, delivery_id)

    assert await recover(client, ada, webhook_id) == (200, {"count": int(goes_again)})

    after = {"state": "pending", "reason": None, "tries": 0, "attempts": 4, "claimed_by": None}
    expected = after | {"finished_at": None} if goes_again else before
    assert await delivery_row(database, delivery_id) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"since": wire(THEN)}, "pending pending pending", id="all"),
        pytest.param({"since": wire(THEN + 1 * SECOND)}, "failed pending pending", id="since"),
        pytest.param(
            {"since": wire(THEN), "until": wire(THEN + 2 * SECOND)},
            "pending pending failed",
            id="not what happened at the end of the time",
        ),
        pytest.param({"since": wire(THEN + DAY)}, "failed failed failed", id="nothing since"),
        pytest.param(
            {"since": wire(THEN), "until": wire(micros() + DAY)},
            "pending pending pending",
            id="an end in the future",
        ),
    ],
)
async def test_the_time_is_held_to(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    body: dict[str, str],
    expected: str,
) -> None:
    for n in range(3):
        await a_delivery(database, webhook_id, at=THEN + n * SECOND, state="failed")

    status, answer = await recover(client, ada, webhook_id, body)

    assert " ".join(await states(database)) == expected
    assert (status, answer) == (200, {"count": expected.count("pending")})


async def test_the_engine_is_woken_and_the_daily_limit_left_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    await a_delivery(database, webhook_id, at=THEN, state="unsent", reason="throttled")
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO webhook_lanes (webhook_id, day_started_at, day_count) VALUES ($1, 5, 9)",
            webhook_id,
        )
    with database.subscribe(DELIVERIES_CHANNEL) as bell:
        await recover(client, ada, webhook_id)

        assert await bell.wait(timeout=SOON_SECONDS)
    async with database.read() as conn:
        row = await conn.fetch_one(
            "SELECT next_due_at, day_started_at, day_count FROM webhook_lanes"
        )
    assert row is not None
    assert row["next_due_at"] <= micros()
    assert (row["day_started_at"], row["day_count"]) == (5, 9)


async def put_back_the_rest(database: Database) -> None:
    """Run the tasks of recoveries as a worker does that delivers nothing meanwhile."""
    handler = queue.handlers[service.RECOVER]
    while True:
        async with database.transaction() as conn:
            rows = await conn.fetch_all(
                "DELETE FROM tasks WHERE kind = $1 RETURNING body", service.RECOVER
            )
            for row in rows:
                await handler.run(conn, queue.decode(handler, row["body"]))
        if not rows:
            return


async def test_of_many_the_worker_puts_back_the_rest(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "RECOVER_BATCH", 2)
    for n in range(5):
        await a_delivery(database, webhook_id, at=THEN + n * SECOND, state="failed")

    answer = await recover(client, ada, webhook_id)

    assert answer == (200, {"count": 5})
    assert await states(database) == ["pending"] * 2 + ["failed"] * 3
    # What fails only now is not meant.
    await a_delivery(database, webhook_id, state="failed")
    await put_back_the_rest(database)
    assert await states(database) == ["pending"] * 5 + ["failed"]


async def test_other_webhooks_are_left_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    other = (await create(client, ada))["id"]
    delivery_id = await a_delivery(database, other, at=THEN, state="failed")

    assert await recover(client, ada, webhook_id) == (200, {"count": 0})
    assert (await delivery_row(database, delivery_id))["state"] == "failed"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param({}, "since is required.", id="no time"),
        pytest.param(
            {"since": 5}, "since must be a timestamp such as 2026-11-15T01:44:56Z.", id="a number"
        ),
        pytest.param(
            {"since": "noon"},
            "since must be a timestamp such as 2026-11-15T01:44:56Z.",
            id="no timestamp",
        ),
        pytest.param(
            {"since": "2026-11-15T01:00:00"},
            "since must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z.",
            id="no time zone",
        ),
        pytest.param(
            {"since": "2026-11-15T01:00:00Z", "until": "2026-11-15T01:00:00Z"},
            "until must be later than since.",
            id="an empty time",
        ),
        pytest.param(
            {"since": "2026-11-15T01:00:00Z", "to": "x"}, "to is not a known field.", id="unknown"
        ),
    ],
)
async def test_bad_bodies_are_refused(
    client: httpx2.AsyncClient, ada: Headers, webhook_id: str, body: Any, sentence: str
) -> None:
    assert await recover(client, ada, webhook_id, body) == (400, {"error": sentence})


@pytest.mark.parametrize(
    ("state", "word"),
    [("disabled", "disabled"), ("suspended-after-failure", "suspended after failures")],
)
async def test_a_webhook_that_is_not_enabled_recovers_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    state: str,
    word: str,
) -> None:
    await a_delivery(database, webhook_id, at=THEN, state="failed")
    async with database.transaction() as conn:
        await conn.execute("UPDATE webhooks SET state = $1", state)

    assert await recover(client, ada, webhook_id) == (
        409,
        {"error": f"The webhook is {word}, so nothing is sent again; enable it first."},
    )
    assert await states(database) == ["failed"]


async def test_somebody_elses_webhook_is_not_found(
    client: httpx2.AsyncClient, database: Database, webhook_id: str
) -> None:
    bob = await sign_in(database, "bob")

    assert await recover(client, bob, webhook_id) == (
        404,
        {"error": f"There is no webhook {webhook_id}."},
    )


async def test_an_administrator_recovers_for_the_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    path = "/api/organizations/engines/settings/webhooks"
    webhook_id = (await create(client, ada, path=path))["id"]
    await a_delivery(database, webhook_id, at=THEN, state="failed")

    response = await client.post(
        f"{path}/{webhook_id}/recover", headers=ada, json={"since": wire(THEN)}
    )

    assert response.json() == {"count": 1}
