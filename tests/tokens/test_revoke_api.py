"""`POST /api/credentials/revoke`: interface 4.2, 7 and 8."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import AuditFilter, Role
from hublet.app import create_application, with_edge
from hublet.core import queue
from hublet.core.database import Database, DatabaseUnavailable
from people import Headers, a_token, an_organization, sign_in
from workers import drain

PATH = "/api/credentials/revoke"
WHOAMI = "/api/whoami-v2"


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def test_a_reported_token_stops_working(
    client: httpx2.AsyncClient, database: Database
) -> None:
    value = await a_token(database, "ada")
    assert (await client.get(WHOAMI, headers=bearer(value))).status_code == 200

    response = await client.post(PATH, json={"credentials": [value]})
    await drain(database)

    assert response.status_code == 202
    assert response.json() == {}
    assert (await client.get(WHOAMI, headers=bearer(value))).status_code == 401


async def test_other_tokens_of_the_same_user_go_on_working(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    value = await a_token(database, "ada")

    await client.post(PATH, json={"credentials": [value]})
    await drain(database)

    assert (await client.get(WHOAMI, headers=ada)).status_code == 200


async def test_the_owners_organizations_see_it_in_their_audit_log(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.write})
    value = await a_token(database, "ada")

    # A second report of the same token is silent.
    for _ in range(2):
        await client.post(PATH, json={"credentials": [value, value]})
        await drain(database)

    async with database.read() as conn:
        lines = await audit.list_of(conn, organization.id, AuditFilter(action="credential.revoke"))
    assert [(line.actor_name, line.target, line.address) for line in lines] == [
        ("anonymous", "ada's token", "127.0.0.1")
    ]
    assert lines[0].details["reason"] == "reported"
    assert value not in str(lines)


async def test_no_token_is_needed_and_a_wrong_one_does_not_matter(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.post(
        PATH, json={"credentials": ["hf_x"]}, headers={"Authorization": "Bearer wrong"}
    )

    assert response.status_code == 202


@pytest.mark.parametrize(
    ("credentials", "status"),
    [
        pytest.param(["x"], 202, id="one character"),
        pytest.param(["x" * 200], 202, id="200 characters"),
        pytest.param(["äöü€"], 202, id="not ASCII"),
        pytest.param([f"hf_{n}" for n in range(1000)], 202, id="1000 items"),
        pytest.param([], 400, id="no item"),
        pytest.param([f"hf_{n}" for n in range(1001)], 400, id="1001 items"),
        pytest.param([""], 400, id="an empty string"),
        pytest.param(["x" * 201], 400, id="201 characters"),
        pytest.param([7], 400, id="a number"),
        pytest.param("hf_x", 400, id="not a list"),
        pytest.param(None, 400, id="null"),
    ],
)
async def test_only_the_shape_decides_the_status(
    client: httpx2.AsyncClient, credentials: object, status: int
) -> None:
    response = await client.post(PATH, json={"credentials": credentials})

    assert response.status_code == status


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "credentials is required."),
        ({"credentials": []}, "credentials must have at least 1 item(s)."),
        ({"credentials": ["a"] * 1001}, "credentials must have at most 1000 items."),
        ({"credentials": ["a", "b" * 201]}, "credentials[1] must have at most 200 characters."),
        ({"credentials": ["a"], "more": 1}, "more is not a known field."),
    ],
)
async def test_a_refusal_names_the_field_and_the_rule(
    client: httpx2.AsyncClient, body: object, sentence: str
) -> None:
    response = await client.post(PATH, json=body)

    assert response.status_code == 400
    assert response.json() == {"error": sentence}


async def test_the_queue_holds_digests_only(client: httpx2.AsyncClient, database: Database) -> None:
    value = await a_token(database, "ada")

    await client.post(PATH, json={"credentials": [value]})

    async with database.read() as conn:
        bodies = [
            row["body"]
            for row in await conn.fetch_all("SELECT body FROM tasks WHERE kind LIKE '%revoke%'")
        ]
    assert len(bodies) == 1
    assert value not in bodies[0]


async def test_an_address_may_report_sixty_times_an_hour(app: FastAPI) -> None:
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        answers = [await client.post(PATH, json={"credentials": ["x"]}) for _ in range(61)]

    assert [a.status_code for a in answers] == [202] * 60 + [429]
    assert answers[-1].headers["ratelimit"].startswith('"revoke";r=0;t=')
    assert int(answers[-1].headers["retry-after"]) <= 3600


async def test_in_test_mode_the_limit_is_quiet(database: Database) -> None:
    hub = database.hub
    server = replace(hub.settings.server, test_mode=True)
    database.hub = replace(hub, settings=replace(hub.settings, server=server))
    transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        answers = [await client.post(PATH, json={"credentials": ["x"]}) for _ in range(61)]

    assert {a.status_code for a in answers} == {202}


async def test_when_the_queue_is_away_the_answer_is_503_and_not_202(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise DatabaseUnavailable("the disk is full")

    monkeypatch.setattr(queue, "add", away)

    response = await client.post(PATH, json={"credentials": ["x"]})

    assert response.status_code == 503


async def test_a_fine_grained_token_can_be_reported_too(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "bob", scopes=["webhooks"])

    await client.post(PATH, json={"credentials": [headers["Authorization"].split()[1]]})
    await drain(database)

    assert (await client.get(WHOAMI, headers=headers)).status_code == 401


async def test_a_report_goes_ahead_of_everything_that_waits(
    client: httpx2.AsyncClient, database: Database
) -> None:
    async with database.transaction() as conn:
        await queue.add_many(conn, [queue.NewTask(kind="waiting", body="{}") for _ in range(3)])

    await client.post(PATH, json={"credentials": ["x"]})

    async with database.transaction() as conn:
        first = await queue.claim(
            conn, worker="w", slow=False, limit=1, lease=timedelta(seconds=30)
        )
    assert [task.kind for task in first] == ["credentials.revoke"]
