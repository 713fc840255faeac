"""`POST /oauth/revoke` (RFC 7009), and what the public revoke call ends."""

import httpx2
import pytest

from hublet.core import outbox, queue
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.events import AccessEnded, CredentialRevoked
from oauth.token_flows import Answer, TestApp, an_app, error_of, refreshed, tokens_of, works
from outbox_events import published_events
from people import a_token
from workers import drain

PATH = "/oauth/revoke"


async def revoke(
    client: httpx2.AsyncClient, app: TestApp, token: str, **more: str
) -> httpx2.Response:
    if app.secret is not None:
        return await client.post(PATH, data={"token": token, **more}, headers=app.basic)
    return await client.post(PATH, data={"token": token, "client_id": app.client_id, **more})


async def can_refresh(client: httpx2.AsyncClient, app: TestApp, given: Answer) -> bool:
    return (await refreshed(client, app, given["refresh_token"])).status_code == 200


@pytest.mark.parametrize("secret", [False, True], ids=["public", "with a secret"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense"])
async def test_a_refresh_token_ends_everything_issued_with_it(
    client: httpx2.AsyncClient, database: Database, *, secret: bool, hint: str | None
) -> None:
    app = await an_app(database, secret=secret)
    given = await tokens_of(client, database, app)
    more = {} if hint is None else {"token_type_hint": hint}

    response = await revoke(client, app, given["refresh_token"], **more)

    assert (response.status_code, response.json()) == (200, {})
    assert not await works(client, given["access_token"])
    assert not await can_refresh(client, app, given)


async def test_revoking_an_access_token_leaves_its_refresh_token(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    assert await works(client, given["access_token"])

    response = await revoke(client, app, given["access_token"])

    assert (response.status_code, response.json()) == (200, {})
    assert not await works(client, given["access_token"])
    assert await can_refresh(client, app, given)
    assert await published_events(database, CredentialRevoked, AccessEnded) == []


async def test_the_response_reveals_nothing_and_tokens_of_others_stay(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    foreign = await tokens_of(client, database, other)
    personal = await a_token(database, "ada")
    own = await tokens_of(client, database, app)
    await revoke(client, app, own["refresh_token"])

    answers = [
        await revoke(client, app, value)
        for value in (
            "unknown",
            "ü",
            own["refresh_token"],
            own["access_token"],
            foreign["refresh_token"],
            foreign["access_token"],
            personal,
        )
    ]

    assert {(each.status_code, each.text) for each in answers} == {(200, "{}")}
    assert await works(client, foreign["access_token"])
    assert await can_refresh(client, other, foreign)
    assert await works(client, personal)


async def test_the_app_must_say_who_it_is(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database, secret=True)
    given = await tokens_of(client, database, app)
    token = {"token": given["refresh_token"]}

    answers = [
        await client.post(PATH, data=token),
        await client.post(PATH, data=token | {"client_id": app.client_id}),
        await client.post(PATH, headers=app.basic, data={"other": "x"}),
    ]

    assert [error_of(each) for each in answers] == [
        (401, "invalid_client"),
        (401, "invalid_client"),
        (400, "invalid_request"),
    ]
    assert await works(client, given["access_token"])


async def test_when_the_database_is_away_the_answer_is_not_200(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await an_app(database)

    async def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("the disk is full")

    monkeypatch.setattr("hublet.tokens.service.find_by_value", away)

    response = await revoke(client, app, "x")

    assert error_of(response) == (503, "temporarily_unavailable")
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_a_token_that_is_reported_ends_the_access_and_the_owner_is_told_once(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    app = await an_app(database)
    given, other = [await tokens_of(client, database, app) for _ in range(2)]
    told: list[str] = []

    async def tell(conn: Connection, event: AccessEnded | CredentialRevoked) -> None:
        told.append(type(event).__name__)

    for event in (AccessEnded, CredentialRevoked):
        monkeypatch.setitem(outbox.reactions, event.kind, {"test.tell": tell})
        queue.handles(f"reaction:{event.kind}:test.tell", reads=event)(tell)
    for _ in range(2):
        response = await client.post("/api/credentials/revoke", json={"credentials": [given[kind]]})
        assert response.status_code == 202
        await drain(database)

    assert told == ["CredentialRevoked"]
    assert not await works(client, given["access_token"])
    assert not await can_refresh(client, app, given)
    assert await works(client, other["access_token"])
    async with database.read() as conn:
        reasons = await conn.fetch_all("SELECT end_reason FROM oauth_accesses ORDER BY id")
    assert [row["end_reason"] for row in reasons] == ["reported", None]


async def test_a_replaced_refresh_token_that_is_reported_still_ends_the_access(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    successor = (await refreshed(client, app, given["refresh_token"])).json()

    await client.post("/api/credentials/revoke", json={"credentials": [given["refresh_token"]]})
    await drain(database)

    assert not await works(client, successor["access_token"])
    assert not await can_refresh(client, app, successor)


async def test_a_personal_token_that_is_reported_ends_no_access(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    personal = await a_token(database, "ada")

    await client.post("/api/credentials/revoke", json={"credentials": [personal]})
    await drain(database)

    assert await works(client, given["access_token"])
