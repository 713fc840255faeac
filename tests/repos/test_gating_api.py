"""Asking for access to gated repositories, and deciding about it."""

import csv
import io
import json
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import AccessDecided, AccessRequested
from hublet.repos import gating
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, disable

MODEL = "/api/models/ada/engine"
ASK, CANCEL = "/ada/engine/ask-access", f"{MODEL}/user-access-request/cancel"
HANDLE, GRANT = f"{MODEL}/user-access-request/handle", f"{MODEL}/user-access-request/grant"


@pytest.fixture
async def bob(database: Database) -> Headers:
    headers = await sign_in(database, "bob")
    user = await a_user(database, "bob")
    async with database.transaction() as conn:
        await accounts.add_email(conn, user, "bob@example.com", verified=True)
    return headers


@pytest.fixture
async def eve(database: Database) -> Headers:
    return await sign_in(database, "eve")


@pytest.fixture
async def gated(client: httpx2.AsyncClient, ada: Headers) -> Headers:
    """A repository of ada's whose requests she decides about."""
    await a_repo(client, ada, "ada/engine")
    await client.put(f"{MODEL}/settings", headers=ada, json={"gated": "manual"})
    return ada


async def requests(client: httpx2.AsyncClient, ada: Headers, status: str) -> list[dict[str, Any]]:
    response = await client.get(f"{MODEL}/user-access-request/{status}", headers=ada)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def may_read(client: httpx2.AsyncClient, headers: Headers) -> bool:
    response = await client.get(f"{MODEL}/auth-check", headers=headers)
    assert response.status_code in {200, 403}
    return response.status_code == 200


async def handle(
    client: httpx2.AsyncClient, headers: Headers, status: str, **body: Any
) -> httpx2.Response:
    who = {} if "requestId" in body else {"user": "bob"}
    return await client.post(HANDLE, headers=headers, json=who | {"status": status} | body)


async def test_a_request_waits_until_it_is_accepted(
    client: httpx2.AsyncClient, database: Database, gated: Headers, bob: Headers
) -> None:
    requested = await client.post(ASK, headers=bob, json={"company": "Acme", "over18": True})
    [waiting] = await requests(client, gated, "pending")
    before = await may_read(client, bob)
    accepted = await handle(client, gated, "accepted")
    after = await may_read(client, bob)

    user = await a_user(database, "bob")
    assert (requested.status_code, requested.json()) == (200, {"status": "pending"})
    assert waiting == {
        "requestId": waiting["requestId"],
        "status": "pending",
        "timestamp": waiting["timestamp"],
        "user": {
            "_id": user.id,
            "user": "bob",
            "fullname": "bob",
            "avatarUrl": waiting["user"]["avatarUrl"],
            "isPro": False,
            "type": "user",
            "email": "bob@example.com",
        },
        "fields": {"company": "Acme", "over18": True},
    }
    assert (before, accepted.json(), after) == (False, {}, True)
    assert await requests(client, gated, "pending") == []
    assert await requests(client, gated, "accepted") == [waiting | {"status": "accepted"}]


async def test_asking_and_deciding_are_told(
    client: httpx2.AsyncClient, database: Database, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)
    await client.post(ASK, headers=bob)
    await handle(client, gated, "rejected")

    [requested] = await published_events(database, AccessRequested)
    [decided] = await published_events(database, AccessDecided)
    user = await a_user(database, "bob")
    assert (requested["repo"]["name"], requested["user_id"], requested["status"]) == (
        "ada/engine",
        user.id,
        "pending",
    )
    assert decided == requested | {
        "status": "rejected",
        "actor_id": (await a_user(database, "ada")).id,
    }


async def test_an_automatic_gate_opens_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await client.put(f"{MODEL}/settings", headers=ada, json={"gated": "auto"})

    before = await may_read(client, bob)
    requested = await client.post(ASK, headers=bob)

    assert (before, requested.json(), await may_read(client, bob)) == (
        False,
        {"status": "accepted"},
        True,
    )
    [event] = await published_events(database, AccessRequested)
    assert event["status"] == "accepted"


async def test_who_waits_at_a_gate_that_becomes_automatic_asks_again(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob, json={"company": "Acme"})
    await client.put(f"{MODEL}/settings", headers=gated, json={"gated": "auto"})

    waiting = await may_read(client, bob)
    again = await client.post(ASK, headers=bob)

    assert (waiting, again.json()) == (False, {"status": "accepted"})
    [request] = await requests(client, gated, "accepted")
    assert request["fields"] == {"company": "Acme"}


async def test_a_rejected_user_reads_the_reason_and_cannot_ask_again(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)
    await handle(client, gated, "rejected", rejectionReason="Not now.")

    again = await client.post(ASK, headers=bob)
    refused = await client.get(f"{MODEL}/auth-check", headers=bob)
    withdrawn = await client.post(CANCEL, headers=bob)

    assert again.json() == {"status": "rejected"}
    assert refused.json() == {
        "error": "Access to model ada/engine is restricted and you are not in the authorized list: "
        "its owner rejected your request."
    }
    assert withdrawn.status_code == 404
    [request] = await requests(client, gated, "rejected")
    assert request["rejectionReason"] == "Not now."


async def test_a_decision_can_be_taken_back(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)
    [request] = await requests(client, gated, "pending")
    await handle(client, gated, "rejected", rejectionReason="Not now.")

    accepted = await handle(client, gated, "accepted", requestId=request["requestId"])
    reading = await may_read(client, bob)
    pending = await handle(client, gated, "pending")

    assert (accepted.status_code, reading, pending.status_code) == (200, True, 200)
    assert await requests(client, gated, "pending") == [request]
    assert not await may_read(client, bob)


async def test_a_pending_request_can_be_withdrawn(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)

    withdrawn = await client.post(CANCEL, headers=bob)
    again = await client.post(CANCEL, headers=bob)

    assert (withdrawn.status_code, withdrawn.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": "There is no pending request of yours for ada/engine."},
    )
    assert await requests(client, gated, "pending") == []


async def test_access_is_granted_without_asking_and_without_an_address(
    client: httpx2.AsyncClient, database: Database, gated: Headers, bob: Headers
) -> None:
    granted = await client.post(GRANT, headers=gated, json={"user": "bob"})
    again = await client.post(GRANT, headers=gated, json={"user": "bob"})

    assert (granted.status_code, granted.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        400,
        {"error": "bob has access to ada/engine already."},
    )
    assert await may_read(client, bob)
    [request] = await requests(client, gated, "accepted")
    assert "email" not in request["user"]
    assert "fields" not in request
    [event] = await published_events(database, AccessDecided)
    assert event["status"] == "accepted"


async def test_granting_answers_a_request(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)

    granted = await client.post(GRANT, headers=gated, json={"user": "bob"})

    assert granted.status_code == 200
    assert await requests(client, gated, "pending") == []
    assert len(await requests(client, gated, "accepted")) == 1


REFUSED = [
    pytest.param({"status": "accepted"}, 400, id="neither user nor request"),
    pytest.param(
        {"user": "bob", "requestId": "a" * 24, "status": "accepted"}, 400, id="user and request"
    ),
    pytest.param({"user": "nobody", "status": "accepted"}, 404, id="an unknown user"),
    pytest.param({"user": "ada", "status": "accepted"}, 404, id="a user who did not ask"),
    pytest.param({"requestId": "a" * 24, "status": "accepted"}, 404, id="an unknown request"),
    pytest.param({"user": "bob", "status": "pending"}, 404, id="in that list already"),
    pytest.param(
        {"user": "bob", "status": "accepted", "rejectionReason": "x"}, 400, id="a reason for yes"
    ),
    pytest.param(
        {"user": "bob", "status": "rejected", "rejectionReason": "x" * 201}, 400, id="a long reason"
    ),
    pytest.param({"user": "bob", "status": "maybe"}, 400, id="an unknown status"),
]


@pytest.mark.parametrize(("body", "status"), REFUSED)
async def test_a_decision_that_does_not_go_is_refused(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers, body: dict[str, Any], status: int
) -> None:
    await client.post(ASK, headers=bob)

    response = await client.post(HANDLE, headers=gated, json=body)

    assert response.status_code == status
    assert len(await requests(client, gated, "pending")) == 1


async def test_a_repository_without_a_gate_has_no_requests(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    answers = [
        await client.post(ASK, headers=bob),
        await client.get(f"{MODEL}/user-access-request/pending", headers=ada),
        await client.post(GRANT, headers=ada, json={"user": "bob"}),
        await handle(client, ada, "accepted"),
    ]

    for answer in answers:
        assert (answer.status_code, answer.json()) == (400, {"error": "ada/engine is not gated."})


async def test_who_can_read_anyway_does_not_ask(client: httpx2.AsyncClient, gated: Headers) -> None:
    requested = await client.post(ASK, headers=gated)
    granted = await client.post(GRANT, headers=gated, json={"user": "ada"})

    assert (requested.status_code, granted.status_code) == (400, 400)


async def test_only_those_who_manage_a_repository_decide(
    client: httpx2.AsyncClient, database: Database, gated: Headers, bob: Headers
) -> None:
    reader = await sign_in(database, "ada", scopes=["write-repos"])
    await client.post(ASK, headers=bob)

    for headers in (bob, reader):
        answers = [
            await client.get(f"{MODEL}/user-access-request/pending", headers=headers),
            await client.post(GRANT, headers=headers, json={"user": "bob"}),
            await handle(client, headers, "accepted"),
        ]
        assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert not await may_read(client, bob)


async def test_writers_of_an_organization_decide(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin, "carol": Role.write})
    carol = await sign_in(database, "carol")
    await a_repo(client, ada, "acme/data", type="dataset")
    path = "/api/datasets/acme/data"
    await client.put(f"{path}/settings", headers=carol, json={"gated": "manual"})
    await client.post("/datasets/acme/data/ask-access", headers=bob)

    body = {"user": "bob", "status": "accepted"}
    decided = await client.post(f"{path}/user-access-request/handle", headers=carol, json=body)

    assert decided.status_code == 200
    assert (await client.get(f"{path}/auth-check", headers=bob)).status_code == 200


async def test_a_private_repository_is_closed_whatever_was_granted(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    await client.post(GRANT, headers=gated, json={"user": "bob"})
    await client.put(f"{MODEL}/settings", headers=gated, json={"private": True})

    for response in (
        await client.get(f"{MODEL}/auth-check", headers=bob),
        await client.post(ASK, headers=bob),
        await client.post(CANCEL, headers=bob),
    ):
        assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.parametrize(
    ("scopes", "status"), [(["gated-repos"], 200), (["read-repos"], 200), (["webhooks"], 403)]
)
async def test_a_token_reads_what_was_granted_with_the_right_scope(
    client: httpx2.AsyncClient, database: Database, gated: Headers, scopes: list[str], status: int
) -> None:
    token = await sign_in(database, "bob", scopes=scopes)
    await client.post(GRANT, headers=gated, json={"user": "bob"})

    response = await client.get(f"{MODEL}/auth-check", headers=token)

    assert response.status_code == status


async def test_asking_needs_a_full_token(
    client: httpx2.AsyncClient, database: Database, gated: Headers
) -> None:
    narrow = await sign_in(database, "bob", scopes=["gated-repos"])

    answers = [await client.post(ASK, headers=headers) for headers in ({}, narrow)]

    assert [answer.status_code for answer in answers] == [401, 403]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({f"field{n}": "x" for n in range(51)}, id="too many"),
        pytest.param({"a": "x" * 2001}, id="too long"),
        pytest.param({"a": {"b": "c"}}, id="an object inside"),
        pytest.param(["a"], id="no object"),
    ],
)
async def test_fields_have_limits(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers, fields: Any
) -> None:
    response = await client.post(ASK, headers=bob, json=fields)

    assert response.status_code == 400


async def test_requests_come_page_by_page_without_disabled_users(
    client: httpx2.AsyncClient, database: Database, gated: Headers
) -> None:
    for name in ("one", "two", "three"):
        await client.post(ASK, headers=await sign_in(database, name))
    await disable(database, "two")

    first = await client.get(f"{MODEL}/user-access-request/pending?limit=1", headers=gated)
    second = await client.get(first.links["next"]["url"], headers=gated)

    names = [request["user"]["user"] for page in (first, second) for request in page.json()]
    assert names == ["one", "three"]
    assert "link" not in second.headers


async def test_requests_go_with_the_repository(
    client: httpx2.AsyncClient, database: Database, gated: Headers, bob: Headers
) -> None:
    await client.post(ASK, headers=bob)

    await client.request("DELETE", "/api/repos/delete", headers=gated, json={"name": "engine"})

    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM access_requests") == 0


REPORT = "/ada/engine/user-access-report"


async def test_all_requests_are_exported_as_csv(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers, eve: Headers
) -> None:
    await client.post(ASK, headers=bob, json={"company": "=Acme()"})
    await handle(client, gated, "rejected", rejectionReason="=1+1")
    await client.post(GRANT, headers=gated, json={"user": "eve"})

    response = await client.get(REPORT, headers=gated)

    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert response.headers["content-type"].startswith("text/csv")
    assert "ada-engine-access-requests.csv" in response.headers["content-disposition"]
    assert [(row["user"], row["status"], row["email"]) for row in rows] == [
        ("bob", "rejected", "bob@example.com"),
        ("eve", "accepted", ""),
    ]
    assert rows[0]["rejectionReason"] == "'=1+1"
    assert json.loads(rows[0]["fields"]) == {"company": "=Acme()"}


async def test_the_export_has_more_requests_than_one_batch(
    client: httpx2.AsyncClient,
    gated: Headers,
    bob: Headers,
    eve: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gating, "_REPORT_BATCH", 1)
    for person in (bob, eve):
        await client.post(ASK, headers=person, json={})

    response = await client.get(REPORT, headers=gated)

    assert [line.partition(",")[0] for line in response.text.splitlines()] == ["user", "bob", "eve"]


async def test_only_who_manages_a_repository_exports_its_requests(
    client: httpx2.AsyncClient, gated: Headers, bob: Headers
) -> None:
    nobody = await client.get(REPORT)
    stranger = await client.get(REPORT, headers=bob)
    missing = await client.get("/ada/other/user-access-report", headers=gated)

    assert [each.status_code for each in (nobody, stranger, missing)] == [403, 403, 404]


async def test_without_a_gate_there_is_nothing_to_export(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.get(REPORT, headers=ada)

    assert (response.status_code, response.json()["error"]) == (400, "ada/engine is not gated.")
