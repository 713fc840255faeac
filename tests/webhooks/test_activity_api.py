"""The list of a webhook's deliveries."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.webhooks.activity import store
from people import Headers, an_organization, sign_in
from webhooks.recorded_deliveries import DAY, SECOND, a_delivery
from webhooks.webhook_calls import IMAGE_JOB, JOB_ID, PATH, a_source_job, create

# A moment in the past, on a whole second.
THEN = 1_790_000_000 * SECOND


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada))["id"]
    return webhook_id


async def listed(
    client: httpx2.AsyncClient, who: Headers, webhook_id: str, **query: Any
) -> list[Any]:
    response = await client.get(f"{PATH}/{webhook_id}/deliveries", headers=who, params=query)
    assert response.status_code == 200, response.text
    found: list[Any] = response.json()
    return found


async def ids(client: httpx2.AsyncClient, who: Headers, webhook_id: str, **query: Any) -> list[str]:
    return [each["id"] for each in await listed(client, who, webhook_id, **query)]


async def refused(
    client: httpx2.AsyncClient, who: Headers, webhook_id: str, **query: Any
) -> tuple[int, str]:
    response = await client.get(f"{PATH}/{webhook_id}/deliveries", headers=who, params=query)
    return response.status_code, response.json()["error"]


def an_event_of(item: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "id": item["event"]["id"],
        "scope": "repo.content",
        "action": "update",
        "repo": {"type": "model", "name": "ada/engine"},
        "createdAt": wire(THEN),
    } | changes


async def test_a_delivery_that_arrived_is_shown_with_its_answer(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    delivery_id = await a_delivery(
        database, webhook_id, at=THEN, attempts=2, status=204, finished_at=THEN + SECOND
    )

    [item] = await listed(client, ada, webhook_id)

    assert item == {
        "id": delivery_id,
        "state": "delivered",
        "event": an_event_of(item),
        "attempts": 2,
        "status": 204,
        "createdAt": wire(THEN),
        "finishedAt": wire(THEN + SECOND),
    }


@pytest.mark.parametrize("state", ["fresh", "pending"])
async def test_a_delivery_that_is_to_be_tried_shows_when(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str, state: str
) -> None:
    delivery_id = await a_delivery(
        database, webhook_id, at=THEN, state=state, due_at=THEN + 5 * SECOND
    )

    [item] = await listed(client, ada, webhook_id)

    assert item == {
        "id": delivery_id,
        "state": "pending",
        "event": an_event_of(item),
        "attempts": 0,
        "createdAt": wire(THEN),
        "nextAttemptAt": wire(THEN + 5 * SECOND),
    }


async def test_what_was_not_sent_says_why(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    event = {"scope": "ping", "repo_type": "space", "repo_name": "bob/mill"}
    delivery_id = await a_delivery(
        database, webhook_id, at=THEN, state="unsent", reason="throttled", ping=True, event=event
    )

    [item] = await listed(client, ada, webhook_id)

    assert item == {
        "id": delivery_id,
        "state": "unsent",
        "reason": "throttled",
        "event": an_event_of(item, scope="ping", repo={"type": "space", "name": "bob/mill"}),
        "attempts": 0,
        "ping": True,
        "createdAt": wire(THEN),
        "finishedAt": wire(THEN),
    }


async def test_the_newest_comes_first_and_pages_follow_each_other(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    made = [await a_delivery(database, webhook_id, at=THEN + n * SECOND) for n in range(5)]
    pages, url = [], f"{PATH}/{webhook_id}/deliveries?limit=2&state=delivered"
    while url:
        response = await client.get(url, headers=ada)
        pages.append([each["id"] for each in response.json()])
        url = response.links.get("next", {}).get("url", "")

    assert pages == [[made[4], made[3]], [made[2], made[1]], [made[0]]]


async def test_only_deliveries_of_this_webhook_are_listed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    other = (await create(client, ada))["id"]
    await a_delivery(database, other)

    assert await ids(client, ada, webhook_id) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, "54321", id="no filter finds everything"),
        pytest.param({"state": "pending"}, "54", id="what nobody looked at yet is pending too"),
        pytest.param({"state": "delivered"}, "3", id="delivered"),
        pytest.param({"state": "failed"}, "2", id="failed"),
        pytest.param({"state": "unsent"}, "1", id="unsent"),
        pytest.param({"reason": "disabled"}, "1", id="by its reason"),
        pytest.param({"scope": "discussion"}, "2", id="by its scope, exactly"),
        pytest.param({"repo": "ADA/mill"}, "3", id="by the name of its repository in any case"),
        pytest.param({"repo": "ada/mil"}, "", id="never by a part of a name"),
        pytest.param({"since": wire(THEN + 4 * SECOND)}, "54", id="from a moment on"),
        pytest.param({"until": wire(THEN + 2 * SECOND)}, "1", id="before a moment"),
        pytest.param(
            {"since": wire(THEN + 2 * SECOND), "until": wire(THEN + 4 * SECOND)},
            "32",
            id="between two moments",
        ),
        pytest.param({"state": "failed", "scope": "repo.content"}, "", id="all filters count"),
    ],
)
async def test_filters_find_what_they_say(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    query: dict[str, str],
    expected: str,
) -> None:
    rows: dict[str, dict[str, Any]] = {
        "1": {"state": "unsent", "reason": "disabled"},
        "2": {"state": "failed", "reason": "timeout", "event": {"scope": "discussion"}},
        "3": {"state": "delivered", "event": {"repo_name": "ada/Mill"}},
        "4": {"state": "pending"},
        "5": {"state": "fresh"},
    }
    made = {
        await a_delivery(database, webhook_id, at=THEN + int(name) * SECOND, **row): name
        for name, row in rows.items()
    }

    found = await ids(client, ada, webhook_id, **query)

    assert "".join(made[each] for each in found) == expected


async def test_a_clock_that_was_turned_back_hides_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    # The id was made before the clock was turned back by an hour.
    late = await a_delivery(database, webhook_id, at=THEN, created_at=THEN - 3600 * SECOND)

    assert await ids(client, ada, webhook_id, until=wire(THEN - 1800 * SECOND)) == [late]


async def test_the_search_for_what_is_rare_goes_on_with_the_next_page(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    webhook_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "REACH", 3)
    rare = await a_delivery(database, webhook_id, at=THEN, state="failed")
    for n in range(1, 6):
        await a_delivery(database, webhook_id, at=THEN + n * SECOND)
    pages, url = [], f"{PATH}/{webhook_id}/deliveries?state=failed"
    while url:
        response = await client.get(url, headers=ada)
        pages.append([each["id"] for each in response.json()])
        url = response.links.get("next", {}).get("url", "")

    assert pages == [[], [rare], []]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param(
            {"state": "lost"},
            "state must be one of 'pending', 'delivered', 'failed' or 'unsent'.",
            id="a state that does not exist",
        ),
        pytest.param({"repo": "engine"}, "repo must match ^[^/]+/[^/]+$.", id="half a name"),
        pytest.param(
            {"since": "yesterday"},
            "since must be a timestamp such as 2026-11-15T01:44:56Z.",
            id="no timestamp",
        ),
        pytest.param(
            {"until": "2026-11-15T01:44:56"},
            "until must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z.",
            id="no time zone",
        ),
        pytest.param(
            {"since": "2026-11-15T01:00:00Z", "until": "2026-11-15T01:00:00Z"},
            "until must be later than since.",
            id="an empty time",
        ),
        pytest.param({"limit": "0"}, "limit must be at least 1.", id="no page"),
        pytest.param(
            {"cursor": "x"},
            "cursor must be taken from the Link header of the page before.",
            id="a cursor of somebody's own",
        ),
    ],
)
async def test_bad_questions_are_refused(
    client: httpx2.AsyncClient,
    ada: Headers,
    webhook_id: str,
    query: dict[str, str],
    sentence: str,
) -> None:
    assert await refused(client, ada, webhook_id, **query) == (400, sentence)


async def test_somebody_elses_deliveries_are_not_found(
    client: httpx2.AsyncClient, database: Database, webhook_id: str
) -> None:
    bob = await sign_in(database, "bob")

    assert await refused(client, bob, webhook_id) == (404, f"There is no webhook {webhook_id}.")


async def test_a_token_without_the_scope_is_refused(
    client: httpx2.AsyncClient, database: Database, webhook_id: str
) -> None:
    narrow = await sign_in(database, "ada", scopes=["read-repos"])

    status, sentence = await refused(client, narrow, webhook_id)

    assert (status, "webhooks" in sentence) == (403, True)


async def test_administrators_see_the_deliveries_of_their_organizations_webhooks(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.write})
    path = "/api/organizations/engines/settings/webhooks"
    webhook_id = (await create(client, ada, path=path))["id"]
    delivery_id = await a_delivery(database, webhook_id, at=micros() - DAY)
    bob = await sign_in(database, "bob")

    response = await client.get(f"{path}/{webhook_id}/deliveries", headers=ada)
    as_own = await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)
    of_member = await client.get(f"{path}/{webhook_id}/deliveries", headers=bob)

    assert [each["id"] for each in response.json()] == [delivery_id]
    assert (as_own.status_code, of_member.status_code) == (404, 403)


async def activity(client: httpx2.AsyncClient, who: Headers, webhook_id: str) -> Any:
    response = await client.get(f"{PATH}/{webhook_id}/activity", headers=who)
    assert response.status_code == 200, response.text
    return response.json()


async def test_the_activity_shows_the_names_of_secrets_and_whose_rights_count(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    await a_source_job(database)
    hidden = {"KEY": "hidden-1", "OTHER": "hidden-2"}
    by_source = (await create(client, ada, jobSourceId=JOB_ID, secrets=hidden))["id"]
    of_job = (await create(client, ada, job=IMAGE_JOB | {"secrets": {"A": "hidden-3"}}))["id"]

    nothing = {"secretNames": [], "triggers": 0, "throttled": False}
    assert await activity(client, ada, webhook_id) == nothing
    assert await activity(client, ada, by_source) == nothing | {
        "secretNames": ["KEY", "OTHER"],
        "runsAs": "ada",
    }
    assert await activity(client, ada, of_job) == nothing | {"secretNames": ["A"], "runsAs": "ada"}
    bob = await sign_in(database, "bob")
    stranger = await client.get(f"{PATH}/{by_source}/activity", headers=bob)
    assert stranger.status_code == 404
