"""Refresh tokens: replaced when they are used, forgiving for a minute, then strict."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import cycle

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.sealing import SealBroken
from hublet.events import AccessEnded
from hublet.oauth.access import issuance
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import EndReason, IssuedTokens
from hublet.oauth.grants.context import GrantContext
from hublet.tokens.records import Scope
from oauth.token_flows import (
    TOKEN,
    Answer,
    TestApp,
    a_code,
    an_app,
    bearer,
    error_of,
    redemption,
    refreshed,
    tokens_of,
    works,
)
from outbox_events import published_events
from people import a_user


def later(**time: float) -> None:
    clock.move(timedelta(**time))


async def test_a_refresh_gives_a_new_pair_and_leaves_the_old_access_token_alone(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)

    response = await refreshed(client, app, given["refresh_token"])

    answer = response.json()
    assert answer == {
        "access_token": answer["access_token"],
        "token_type": "bearer",
        "expires_in": 28_800,
        "scope": "read-repos",
        "refresh_token": answer["refresh_token"],
    }
    assert len({*answer.values()} & {*given.values()}) == 3
    assert await works(client, answer["access_token"])
    assert await works(client, given["access_token"])


@pytest.mark.parametrize("secret", [False, True], ids=["public", "with a secret"])
async def test_a_token_used_again_within_a_minute_gets_the_same_response(
    client: httpx2.AsyncClient, database: Database, *, secret: bool
) -> None:
    app = await an_app(database, secret=secret)
    given = await tokens_of(client, database, app)
    first = await refreshed(client, app, given["refresh_token"])
    later(seconds=59)

    second = await refreshed(client, app, given["refresh_token"])

    assert second.status_code == 200
    assert second.json() == first.json()
    assert (await refreshed(client, app, first.json()["refresh_token"])).status_code == 200


async def test_the_response_to_an_older_token_is_repeated_too(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    first = (await tokens_of(client, database, app))["refresh_token"]
    second = (await refreshed(client, app, first)).json()["refresh_token"]
    await refreshed(client, app, second)

    again = await refreshed(client, app, first)

    assert again.json()["refresh_token"] == second


async def test_a_token_used_again_later_ends_the_access(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    successor = (await refreshed(client, app, given["refresh_token"])).json()
    later(seconds=61)

    reused = await refreshed(client, app, given["refresh_token"])

    assert error_of(reused) == (400, "invalid_grant")
    assert not await works(client, given["access_token"])
    assert not await works(client, successor["access_token"])
    assert error_of(await refreshed(client, app, successor["refresh_token"])) == (
        400,
        "invalid_grant",
    )
    ada = await a_user(database, "ada")
    assert await published_events(database, AccessEnded) == [
        {"user_id": ada.id, "app_id": app.app.id, "app_name": "Engine", "reason": "reuse"}
    ]


async def test_an_older_ancestor_ends_the_access_too_and_the_owner_is_notified_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    oldest = latest = (await tokens_of(client, database, app))["refresh_token"]
    for _ in range(3):
        latest = (await refreshed(client, app, latest)).json()["refresh_token"]
        later(seconds=61)

    errors = [error_of(await refreshed(client, app, each)) for each in (oldest, oldest, latest)]

    assert errors == [(400, "invalid_grant")] * 3
    assert len(await published_events(database, AccessEnded)) == 1


async def test_what_ends_an_access_ends_it_for_all_who_are_served_with_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    oldest = (await tokens_of(client, database, app))["refresh_token"]
    latest = (await refreshed(client, app, oldest)).json()["refresh_token"]
    bystander = (await tokens_of(client, database, other))["refresh_token"]
    later(seconds=61)

    _, reused, good = await asyncio.gather(
        refreshed(client, app, latest),
        refreshed(client, app, oldest),
        refreshed(client, other, bystander),
    )
    # Whoever was served first.
    last = await refreshed(client, app, latest)

    assert error_of(reused) == error_of(last) == (400, "invalid_grant")
    assert await works(client, good.json()["access_token"])
    assert await count_live_tokens(database, app) == 0


async def count_live_tokens(database: Database, app: TestApp) -> int:
    async with database.read() as conn:
        found: int = await conn.fetch_value(
            "SELECT count(*) FROM tokens WHERE app_id = $1 AND revoked_at IS NULL", app.app.id
        )
    return found


async def test_the_end_of_one_access_leaves_the_others_alone(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    ended, other = [await tokens_of(client, database, app) for _ in range(2)]
    await refreshed(client, app, ended["refresh_token"])
    later(seconds=61)

    await refreshed(client, app, ended["refresh_token"])

    assert await works(client, other["access_token"])
    assert (await refreshed(client, app, other["refresh_token"])).status_code == 200


async def test_fifty_at_once_get_one_successor(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)

    responses = await asyncio.gather(
        *(refreshed(client, app, given["refresh_token"]) for _ in range(50))
    )

    assert {each.status_code for each in responses} == {200}
    assert len({each.text for each in responses}) == 1
    assert await count(database, "oauth_refreshes") == 2
    assert await count(database, "oauth_accesses") == 1


async def test_several_processes_agree_on_one_successor(
    client: httpx2.AsyncClient,
    app: FastAPI,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Desks share nothing but the database, as processes do."""
    tested = await an_app(database)
    given = await tokens_of(client, database, tested)
    contexts = cycle([GrantContext(database, app.state.limiter) for _ in range(4)])
    monkeypatch.setattr("hublet.oauth.routes.grant_context_of", lambda _request: next(contexts))

    responses = await asyncio.gather(
        *(refreshed(client, tested, given["refresh_token"]) for _ in range(20))
    )

    assert {each.status_code for each in responses} == {200}
    assert len({each.text for each in responses}) == 1
    assert await count(database, "oauth_refreshes") == 2


async def count(database: Database, table: str) -> int:
    async with database.read() as conn:
        found: int = await conn.fetch_value(f"SELECT count(*) FROM {table}")
    return found


async def test_another_app_can_neither_use_nor_end_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    given = await tokens_of(client, database, app)
    await refreshed(client, app, given["refresh_token"])
    later(seconds=61)

    stolen = await refreshed(client, other, given["refresh_token"])

    assert error_of(stolen) == (400, "invalid_grant")
    assert await works(client, given["access_token"])


@pytest.mark.parametrize(
    ("days", "status"),
    [pytest.param(29.9, 200, id="29.9 days"), pytest.param(30.1, 400, id="30.1 days")],
)
async def test_a_refresh_token_lives_for_thirty_idle_days(
    client: httpx2.AsyncClient, database: Database, days: float, status: int
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    later(days=days)

    response = await refreshed(client, app, given["refresh_token"])

    assert response.status_code == status


async def test_after_ninety_days_a_person_is_asked_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    latest = await tokens_of(client, database, app)
    for _ in range(4):
        later(days=22)
        latest = (await refreshed(client, app, latest["refresh_token"])).json()
    later(days=1.9)

    last = await refreshed(client, app, latest["refresh_token"])
    later(days=0.2)

    # Nothing outlives the access, not even the last access token.
    assert 8000 < last.json()["expires_in"] < 8641
    assert error_of(await refreshed(client, app, last.json()["refresh_token"])) == (
        400,
        "invalid_grant",
    )
    assert not await works(client, last.json()["access_token"])


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        pytest.param(None, "profile write-repos", id="none: all"),
        pytest.param("profile", "profile", id="fewer"),
        pytest.param("read-repos", "read-repos", id="what one includes"),
        pytest.param("write-repos profile", "profile write-repos", id="all of them"),
        pytest.param("manage-repos", None, id="more"),
        pytest.param("profile webhooks", None, id="another one"),
    ],
)
async def test_scopes_can_be_fewer_and_never_more(
    client: httpx2.AsyncClient, database: Database, scope: str | None, expected: str | None
) -> None:
    app = await an_app(database, scopes=["profile", "write-repos", "webhooks"])
    given = await tokens_of(client, database, app, scopes=["profile", "write-repos"])
    asked = {} if scope is None else {"scope": scope}

    response = await refreshed(client, app, given["refresh_token"], **asked)

    if expected is None:
        assert error_of(response) == (400, "invalid_scope")
        # The refresh token was not spent, and keeps the whole set.
        response = await refreshed(client, app, given["refresh_token"])
        expected = "profile write-repos"
    assert response.json()["scope"] == expected
    whole = await refreshed(client, app, response.json()["refresh_token"])
    assert whole.json()["scope"] == "profile write-repos"


async def test_who_asks_again_for_other_scopes_gets_those_beside_the_same_refresh_token(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, scopes=["profile", "email"])
    given = await tokens_of(client, database, app)
    whole = (await refreshed(client, app, given["refresh_token"])).json()

    narrow = (await refreshed(client, app, given["refresh_token"], scope="profile")).json()

    assert (narrow["scope"], narrow["refresh_token"]) == ("profile", whole["refresh_token"])
    shown = await client.get("/api/whoami-v2", headers=bearer(narrow["access_token"]))
    assert "email" not in shown.json()


async def disable(database: Database, _app: TestApp) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1 WHERE name = 'ada'")


async def end_access(database: Database, _app: TestApp) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        found = await access_store.list_of(conn, ada.id)
        await accesses.end(conn, [each.id for each in found], EndReason.owner)


async def end_app(database: Database, app: TestApp) -> None:
    async with database.transaction() as conn:
        await accesses.end_of_app(conn, app.app.id, EndReason.app_deleted)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(disable, id="the user is disabled"),
        pytest.param(end_access, id="the person ends the access"),
        pytest.param(end_app, id="the app goes"),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["first use", "asked again"])
async def test_what_ends_an_access_ends_its_tokens_at_once(
    client: httpx2.AsyncClient,
    database: Database,
    happens: Callable[[Database, TestApp], object],
    *,
    again: bool,
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    if again:
        await refreshed(client, app, given["refresh_token"])
    await happens(database, app)  # type: ignore[misc]

    assert error_of(await refreshed(client, app, given["refresh_token"])) == (400, "invalid_grant")
    assert not await works(client, given["access_token"])
    assert await published_events(database, AccessEnded) == []


async def test_a_refresh_that_meets_the_end_of_its_access_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, ada = await an_app(database), await a_user(database, "ada")
    given = await tokens_of(client, database, app)

    async with database.transaction() as conn:
        [access] = await access_store.list_of(conn, ada.id)
        await accesses.end(conn, [access.id], EndReason.owner)
        refresh = asyncio.create_task(refreshed(client, app, given["refresh_token"]))
        # Long enough for it to have read what is not ended yet.
        await asyncio.sleep(0.2)

    assert error_of(await refresh) == (400, "invalid_grant")


async def test_a_refresh_needs_the_app_and_the_token(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    body = {"grant_type": "refresh_token"}

    nobody = await client.post(TOKEN, data=body | {"refresh_token": given["refresh_token"]})
    nothing = await client.post(TOKEN, data=body | {"client_id": app.client_id})
    foreign = await refreshed(
        client, app, given["refresh_token"], resource="https://elsewhere.test"
    )

    assert [error_of(each) for each in (nobody, nothing, foreign)] == [
        (401, "invalid_client"),
        (400, "invalid_request"),
        (400, "invalid_target"),
    ]


async def test_an_access_is_listed_while_it_lasts(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    code = await a_code(database, app, address="10.0.0.1", agent="browser")
    await client.post(TOKEN, data=redemption(code, client_id=app.client_id))
    ada = await a_user(database, "ada")

    async with database.read() as conn:
        listed = await access_store.list_of(conn, ada.id)
        later(days=91)
        afterwards = await access_store.list_of(conn, ada.id)

    assert [(each.permission.app_id, each.via, each.address, each.agent) for each in listed] == [
        (app.app.id, "code", "10.0.0.1", "browser")
    ]
    assert listed[0].last_used_at >= listed[0].created_at
    assert listed[0].expires_at - listed[0].created_at == timedelta(days=90)
    assert afterwards == []


def test_a_kept_answer_opens_only_with_the_token_that_was_presented() -> None:
    issued = IssuedTokens(
        access_token="hf_oauth_a",
        refresh_token="hf_rt_b",
        expires_in=7,
        scopes=frozenset({Scope.email}),
    )

    sealed = issuance.seal_response(issued, used_token="hf_rt_old")

    assert issuance.unseal_response(sealed, used_token="hf_rt_old") == issued
    assert b"hf_oauth_a" not in sealed
    with pytest.raises(SealBroken):
        issuance.unseal_response(sealed, used_token="hf_rt_other")


async def test_a_response_that_was_lost_is_given_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    """R10: the commit is what counts, whether or not anybody heard of it."""
    app = await an_app(database)
    given: Answer = await tokens_of(client, database, app)
    lost = asyncio.create_task(refreshed(client, app, given["refresh_token"]))
    await asyncio.sleep(0)
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)

    again = await refreshed(client, app, given["refresh_token"])

    assert again.status_code == 200
