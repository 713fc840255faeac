"""`POST /oauth/token`: authorization codes, client authentication, the form of requests."""

import asyncio
import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.config import called_address
from hublet.core.database import Database
from hublet.events import AccessEnded
from hublet.oauth import service
from hublet.oauth.access import issuance
from hublet.oauth.clients import ClientCredentials
from hublet.oauth.errors import OAuthError
from hublet.oauth.grants.context import GrantContext, TokenRequest
from hublet.oauth.id_tokens import at_hash
from oauth.token_flows import (
    REDIRECT_URI,
    TOKEN,
    VERIFIER,
    a_code,
    an_app,
    basic,
    bearer,
    error_of,
    redemption,
    refreshed,
    tokens_of,
    works,
)
from outbox_events import published_events
from people import Headers
from scratch_database import wait_until


async def test_a_public_app_redeems_a_code_with_its_client_id_and_pkce(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, scopes=["profile", "read-repos"])
    code = await a_code(database, app)

    response = await client.post(TOKEN, data=redemption(code, client_id=app.client_id))

    assert response.status_code == 200
    answer = response.json()
    assert answer == {
        "access_token": answer["access_token"],
        "token_type": "bearer",
        "expires_in": 28_800,
        "scope": "profile read-repos",
        "refresh_token": answer["refresh_token"],
    }
    assert answer["access_token"].startswith("hf_oauth_")
    assert answer["refresh_token"].startswith("hf_rt_")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["pragma"] == "no-cache"
    assert await works(client, answer["access_token"])
    assert not await works(client, answer["refresh_token"])


async def test_a_public_app_must_not_authenticate(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    code = await a_code(database, app)

    response = await client.post(TOKEN, data=redemption(code), headers=basic(app.client_id, ""))

    assert error_of(response) == (401, "invalid_client")
    assert response.headers["www-authenticate"] == 'Basic realm="hublet"'
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["pragma"] == "no-cache"


async def test_an_app_with_a_secret_sends_it_in_a_header_or_in_the_body(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    by_header = redemption(await a_code(database, app))
    by_body = redemption(
        await a_code(database, app), client_id=app.client_id, client_secret=app.secret
    )

    first = await client.post(TOKEN, data=by_header, headers=app.basic)
    second = await client.post(TOKEN, data=by_body)

    assert (first.status_code, second.status_code) == (200, 200)


async def test_an_app_with_a_secret_must_prove_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    body = redemption(await a_code(database, app), client_id=app.client_id)

    response = await client.post(TOKEN, data=body)

    assert error_of(response) == (401, "invalid_client")


async def test_an_app_whose_secret_was_deleted_is_public(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    await delete_secrets(database)
    code = await a_code(database, app)

    old = await client.post(TOKEN, data=redemption(code), headers=app.basic)
    public = await client.post(TOKEN, data=redemption(code, client_id=app.client_id))

    assert error_of(old) == (401, "invalid_client")
    assert public.status_code == 200


async def test_a_code_without_pkce_is_lost_with_the_secret(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    code = await a_code(database, app, challenge=None)
    await delete_secrets(database)

    response = await client.post(
        TOKEN, data=redemption(code, code_verifier=None, client_id=app.client_id)
    )

    assert error_of(response) == (400, "invalid_grant")


async def delete_secrets(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM oauth_secrets")


async def test_two_ways_to_authenticate_at_once_are_one_too_many(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    body = redemption(await a_code(database, app), client_secret=app.secret)

    response = await client.post(TOKEN, data=body, headers=app.basic)

    assert error_of(response) == (400, "invalid_request")


async def test_header_and_body_must_name_the_same_app(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database, secret=True), await an_app(database)
    code = await a_code(database, app)

    wrong = await client.post(
        TOKEN, data=redemption(code, client_id=other.client_id), headers=app.basic
    )
    same = await client.post(
        TOKEN, data=redemption(code, client_id=app.client_id), headers=app.basic
    )

    assert error_of(wrong) == (400, "invalid_request")
    assert same.status_code == 200


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("Basic ?", (401, "invalid_client"), id="not Base64"),
        pytest.param("Basic YWJj", (401, "invalid_client"), id="no colon"),
        pytest.param("Basic", (401, "invalid_client"), id="nothing behind it"),
        pytest.param("Basic /zo=", (401, "invalid_client"), id="not UTF-8"),
        pytest.param("Bearer hf_x", (401, "invalid_client"), id="another scheme"),
    ],
)
async def test_a_header_that_cannot_be_read_is_refused(
    client: httpx2.AsyncClient, header: str, expected: tuple[int, str]
) -> None:
    response = await client.post(TOKEN, data=redemption("ac_x"), headers={"Authorization": header})

    assert error_of(response) == expected


async def test_the_scheme_may_be_lower_case_and_spaces_do_not_matter(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    header = app.basic["Authorization"].replace("Basic ", "basic   ")

    response = await client.post(
        TOKEN,
        data=redemption(await a_code(database, app)),
        headers={"Authorization": header},
    )

    assert response.status_code == 200


async def test_two_headers_are_refused(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database, secret=True)
    header = ("Authorization", app.basic["Authorization"])

    response = await client.post(
        TOKEN, data=redemption(await a_code(database, app)), headers=[header, header]
    )

    assert error_of(response) == (400, "invalid_request")


async def test_an_unknown_app_and_a_wrong_secret_look_the_same(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    headers: list[Headers] = [
        basic("f" * 24, "hf_cs_x"),
        basic(app.client_id, "hf_cs_x"),
        basic(app.client_id, ""),
    ]

    answers = [await client.post(TOKEN, data=redemption("ac_x"), headers=each) for each in headers]

    assert {answer.content for answer in answers} == {answers[0].content}
    assert [error_of(answer) for answer in answers] == [(401, "invalid_client")] * 3


@pytest.mark.parametrize("name", ["grant_type", "client_id", "code"])
async def test_a_parameter_must_not_be_repeated(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)
    twice = [*body.items(), (name, body[name])]

    response = await client.post(
        TOKEN,
        content=urlencode(twice),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    assert error_of(response) == (400, "invalid_request")
    assert response.json()["error_description"] == f"{name} must not be repeated."


async def test_a_repeated_name_in_json_is_refused_too(client: httpx2.AsyncClient) -> None:
    response = await client.post(
        TOKEN,
        content=b'{"grant_type": "refresh_token", "grant_type": "authorization_code"}',
        headers={"Content-Type": "application/json"},
    )

    assert error_of(response) == (400, "invalid_request")


async def test_parameters_in_the_address_do_not_count_and_secrets_are_refused_there(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)

    secret = await client.post(f"{TOKEN}?client_secret=x", data=body)
    ignored = await client.post(f"{TOKEN}?grant_type=password", data=body)

    assert error_of(secret) == (400, "invalid_request")
    assert ignored.status_code == 200


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        pytest.param(f"{FORM}; charset=utf-8", 200, id="a form with a charset"),
        pytest.param(FORM.upper(), 200, id="upper case"),
        pytest.param("application/json", 200, id="JSON"),
        pytest.param(f"application/json, {FORM}", 400, id="two at once"),
        pytest.param("multipart/form-data; boundary=x", 400, id="multipart"),
        pytest.param(None, 400, id="none"),
    ],
)
async def test_the_body_is_a_form_or_json(
    client: httpx2.AsyncClient, database: Database, content_type: str | None, status: int
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)
    as_json = content_type == "application/json"
    content = json.dumps(body) if as_json else str(httpx2.QueryParams(body))
    headers = {"Content-Type": content_type} if content_type else {}

    response = await client.post(TOKEN, content=content.encode(), headers=headers)

    assert response.status_code == status
    assert status == 200 or response.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        pytest.param(b"x=" + b"a" * 2_000_000, {}, 413, id="refused by the edge"),
        pytest.param(b"x=" + b"a" * 70_000, {}, 413, id="too large for this endpoint"),
        pytest.param(b"x=1", {"Content-Encoding": "gzip"}, 415, id="compressed"),
        pytest.param(b"x=%ff", {}, 400, id="not UTF-8"),
        pytest.param(b"\xff=1", {}, 400, id="a name that is not UTF-8"),
        pytest.param(b"&".join([b"x=1"] * 200), {}, 400, id="too many parameters"),
        pytest.param(b"[]", {"Content-Type": "application/json"}, 400, id="an array"),
        pytest.param(b'[["a", "b"]]', {"Content-Type": "application/json"}, 400, id="pairs"),
        pytest.param(b"{", {"Content-Type": "application/json"}, 400, id="broken JSON"),
        pytest.param(b'{"a": 1}', {"Content-Type": "application/json"}, 400, id="a number"),
        pytest.param(
            b'{"code": "\\ud800"}', {"Content-Type": "application/json"}, 400, id="surrogate"
        ),
        pytest.param(b"[" * 60_000, {"Content-Type": "application/json"}, 400, id="deep JSON"),
        pytest.param(b"", {}, 400, id="an empty body"),
    ],
)
async def test_a_body_that_cannot_be_read_is_an_oauth_error(
    client: httpx2.AsyncClient, content: bytes, headers: Headers, status: int
) -> None:
    response = await client.post(TOKEN, content=content, headers={"Content-Type": FORM} | headers)

    assert error_of(response) == (status, "invalid_request")
    assert response.json()["error_description"]


@pytest.mark.parametrize("value", ["a\x00b", "a\nb", "a\x7fb", "x" * 10_000])
@pytest.mark.parametrize(
    "name", ["grant_type", "code", "redirect_uri", "code_verifier", "client_id", "scope", "other"]
)
async def test_a_value_that_no_client_means_is_refused_and_not_repeated(
    client: httpx2.AsyncClient, name: str, value: str
) -> None:
    response = await client.post(TOKEN, data=redemption("ac_x") | {name: value})

    assert error_of(response) == (400, "invalid_request")
    assert response.json()["error_description"].startswith(f"{name} must ")
    assert value not in response.text


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_only_post_is_possible(client: httpx2.AsyncClient, method: str) -> None:
    response = await client.request(method, TOKEN)

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", [TOKEN, "/oauth/device", "/oauth/revoke", "/oauth/introspect"])
async def test_scripts_of_other_origins_may_ask_without_cookies(
    client: httpx2.AsyncClient, path: str
) -> None:
    response = await client.options(
        path, headers={"Origin": "https://a.test", "Access-Control-Request-Method": "POST"}
    )

    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in response.headers


async def test_the_code_names_the_app_when_the_client_does_not(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    code = await a_code(database, app)

    response = await client.post(TOKEN, data=redemption(code), headers={"Origin": "https://a.test"})

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "*"


async def test_without_a_client_id_the_verifier_alone_must_fit(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, with_secret = await an_app(database), await an_app(database, secret=True)
    wrong = redemption(await a_code(database, app), code_verifier="w" * 43)
    without = redemption(await a_code(database, app, challenge=None), code_verifier=None)
    confidential = redemption(await a_code(database, with_secret))

    answers = [await client.post(TOKEN, data=body) for body in (wrong, without, confidential)]

    assert [error_of(answer) for answer in answers] == [
        (400, "invalid_grant"),
        (400, "invalid_grant"),
        (401, "invalid_client"),
    ]


async def test_an_unknown_grant_type_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post(TOKEN, data={"grant_type": "password", "username": "ada"})

    assert error_of(response) == (400, "unsupported_grant_type")


async def test_a_missing_grant_type_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post(TOKEN, data={"code": "x"})

    assert response.status_code == 400
    assert response.json() == {
        "error": "invalid_request",
        "error_description": "grant_type is required.",
    }


@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        pytest.param("v" * 42, "invalid_request", id="42 characters"),
        pytest.param("v" * 129, "invalid_request", id="129 characters"),
        pytest.param("v" * 42 + "+", "invalid_request", id="another alphabet"),
        pytest.param(None, "invalid_grant", id="left out"),
        pytest.param("", "invalid_grant", id="empty"),
        pytest.param("w" * 43, "invalid_grant", id="wrong"),
    ],
)
@pytest.mark.parametrize("secret", [False, True], ids=["public", "P11 with a secret"])
async def test_the_verifier_must_fit(
    client: httpx2.AsyncClient,
    database: Database,
    verifier: str | None,
    error: str,
    *,
    secret: bool,
) -> None:
    app = await an_app(database, secret=secret)
    body = redemption(await a_code(database, app), code_verifier=verifier)
    headers = app.basic if secret else {}

    response = await client.post(
        TOKEN, data=body if secret else body | {"client_id": app.client_id}, headers=headers
    )

    assert error_of(response) == (400, error)


async def test_a_verifier_without_a_challenge_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    code = await a_code(database, app, challenge=None)

    refused = await client.post(TOKEN, data=redemption(code), headers=app.basic)
    without = await client.post(TOKEN, data=redemption(code, code_verifier=None), headers=app.basic)

    assert error_of(refused) == (400, "invalid_grant")
    assert without.status_code == 200


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"code_verifier": "w" * 43}, 400, id="a wrong verifier spends it"),
        pytest.param({"code_verifier": "short"}, 200, id="a bad verifier does not"),
        pytest.param({"code_verifier": None}, 200, id="a missing verifier does not"),
        pytest.param({"redirect_uri": "http://localhost/callback"}, 200, id="another URI"),
        pytest.param({"redirect_uri": None}, 200, id="no URI"),
        pytest.param({"client_id": "f" * 24}, 200, id="an unknown app does not"),
        pytest.param({"resource": "https://evil.test/"}, 200, id="a foreign resource"),
    ],
)
async def test_what_spends_a_code(
    client: httpx2.AsyncClient, database: Database, first: dict[str, str | None], second: int
) -> None:
    app = await an_app(database)
    right: dict[str, str | None] = {"client_id": app.client_id}
    code = await a_code(database, app)

    refused = await client.post(TOKEN, data=redemption(code, **(right | first)))
    answer = await client.post(TOKEN, data=redemption(code, **right))

    assert refused.status_code in {400, 401}
    assert answer.status_code == second


@pytest.mark.parametrize(
    ("redirect_uri"),
    [
        pytest.param("http://localhost/callback", id="the registered one"),
        pytest.param(REDIRECT_URI + "/", id="another path"),
        pytest.param(None, id="none"),
    ],
)
async def test_the_redirect_uri_is_that_of_the_authorization_request(
    client: httpx2.AsyncClient, database: Database, redirect_uri: str | None
) -> None:
    app = await an_app(database)
    body = redemption(
        await a_code(database, app), redirect_uri=redirect_uri, client_id=app.client_id
    )

    response = await client.post(TOKEN, data=body)

    assert response.json() == {
        "error": "invalid_grant",
        "error_description": "redirect_uri must be the one of the authorization request.",
    }


async def test_another_app_can_neither_redeem_nor_use_up_a_code(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    code = await a_code(database, app)

    stolen = await client.post(TOKEN, data=redemption(code, client_id=other.client_id))
    own = await client.post(TOKEN, data=redemption(code, client_id=app.client_id))

    assert error_of(stolen) == (400, "invalid_grant")
    assert own.status_code == 200


@pytest.mark.parametrize(
    ("seconds", "status"),
    [pytest.param(59, 200, id="59 s"), pytest.param(61, 400, id="61 s")],
)
async def test_a_code_lives_for_a_minute(
    client: httpx2.AsyncClient, database: Database, seconds: int, status: int
) -> None:
    app = await an_app(database)
    code = await a_code(database, app)
    clock.move(timedelta(seconds=seconds))

    response = await client.post(TOKEN, data=redemption(code, client_id=app.client_id))

    assert response.status_code == status


@pytest.mark.parametrize("seconds", [0, 30, 7200])
async def test_a_code_used_again_ends_the_access_it_gave(
    client: httpx2.AsyncClient, database: Database, seconds: int
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)
    given = (await client.post(TOKEN, data=body)).json()
    clock.move(timedelta(seconds=seconds))

    response = await client.post(TOKEN, data=body)

    assert error_of(response) == (400, "invalid_grant")
    assert not await works(client, given["access_token"])
    assert error_of(await refreshed(client, app, given["refresh_token"])) == (400, "invalid_grant")
    facts = await published_events(database, AccessEnded)
    assert [(fact["app_id"], fact["app_name"], fact["reason"]) for fact in facts] == [
        (app.app.id, "Engine", "reuse")
    ]


async def test_a_used_code_brought_by_another_app_ends_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    code = await a_code(database, app)
    given = (await client.post(TOKEN, data=redemption(code, client_id=app.client_id))).json()

    await client.post(TOKEN, data=redemption(code, client_id=other.client_id))

    assert await works(client, given["access_token"])


async def test_of_many_redemptions_at_once_one_succeeds(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)

    answers = await asyncio.gather(*(client.post(TOKEN, data=body) for _ in range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 7


async def test_requests_that_come_together_are_served_together_and_each_by_itself(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, other = await an_app(database), await an_app(database, secret=True)
    codes = [await a_code(database, app, user=f"user-{number}") for number in range(20)]
    used = redemption(await a_code(database, app), client_id=app.client_id)
    await client.post(TOKEN, data=used)
    foreign = redemption(await a_code(database, other), client_id=app.client_id)
    wrong = redemption(await a_code(database, app), client_id=app.client_id, code_verifier="w" * 43)
    transactions = 0
    transaction = database.transaction

    def counted() -> object:
        nonlocal transactions
        transactions += 1
        return transaction()

    monkeypatch.setattr(database, "transaction", counted)
    bodies = [redemption(code, client_id=app.client_id) for code in codes]
    answers = await asyncio.gather(
        *(client.post(TOKEN, data=body) for body in [*bodies, used, foreign, wrong])
    )

    assert [each.status_code for each in answers] == [200] * 20 + [400] * 3
    whoami = [
        await client.get("/api/whoami-v2", headers=bearer(each.json()["access_token"]))
        for each in answers[:20]
    ]
    assert [each.json()["name"] for each in whoami] == [f"user-{number}" for number in range(20)]
    assert transactions < 12


@pytest.mark.parametrize("grant_type", ["authorization_code", "refresh_token"])
async def test_requests_that_are_served_together_may_call_a_local_hub_by_different_names(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    grant_type: str,
) -> None:
    tested = await an_app(database)
    values = {
        name: redemption(await a_code(database, tested))
        if grant_type == "authorization_code"
        else {"refresh_token": (await tokens_of(client, database, tested))["refresh_token"]}
        for name in ("localhost", "127.0.0.1")
    }
    settings = database.hub.settings
    local = replace(settings, server=replace(settings.server, base_url=None))
    monkeypatch.setattr(database, "hub", replace(database.hub, settings=local))
    context = GrantContext(database, app.state.limiter)
    credentials = ClientCredentials(client_id=tested.client_id)
    # Remembered: so both come before either is served.
    await context.clients.authenticate(credentials)

    async def issued(name: str) -> dict[str, Any]:
        called_address.set(f"http://{name}:8000")
        parameters = {"grant_type": grant_type, "resource": f"http://{name}:8000", **values[name]}
        request = TokenRequest(parameters=parameters, credentials=credentials, address="::1")
        return await service.issue_tokens(context, request)

    answers = await asyncio.gather(*map(issued, values))

    assert all("access_token" in each for each in answers)


async def test_codes_that_come_again_and_refresh_tokens_lock_accesses_in_one_order(
    app: FastAPI, client: httpx2.AsyncClient, database: Database
) -> None:
    if database.kind == "sqlite":
        pytest.skip("SQLite has one writer.")
    tested = await an_app(database)
    codes = [await a_code(database, tested) for _ in range(2)]
    answers = [
        (await client.post(TOKEN, data=redemption(code, client_id=tested.client_id))).json()
        for code in codes
    ]
    async with database.read() as conn:
        refresh_tokens = [
            await issuance.find_refresh_token(conn, answer["refresh_token"]) for answer in answers
        ]
    of_access = {
        token.access.id: (code, answer["refresh_token"])
        for code, answer, token in zip(codes, answers, refresh_tokens, strict=True)
        if token is not None
    }
    (_, first), (_, second) = (of_access[each] for each in sorted(of_access))
    context = GrantContext(database, app.state.limiter)
    credentials = ClientCredentials(client_id=tested.client_id)
    # Remembered: so both come before either is served.
    await context.clients.authenticate(credentials)

    async with database.transaction() as refreshing:
        await issuance.lock_refresh_tokens(refreshing, [first])
        reused = asyncio.gather(
            *(
                service.issue_tokens(
                    context,
                    TokenRequest(
                        parameters=redemption(of_access[each][0]),
                        credentials=credentials,
                        address="::1",
                    ),
                )
                for each in sorted(of_access, reverse=True)
            ),
            return_exceptions=True,
        )
        await wait_until(lambda: _is_waiting(database))
        await issuance.lock_refresh_tokens(refreshing, [second])

    assert [type(each) for each in await reused] == [OAuthError] * 2
    assert not await works(client, answers[0]["access_token"])


async def _is_waiting(database: Database) -> bool:
    async with database.read() as conn:
        return bool(await conn.fetch_value("SELECT count(*) FROM pg_locks WHERE NOT granted"))


async def test_several_processes_agree_on_who_redeems_a_code(
    client: httpx2.AsyncClient,
    app: FastAPI,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Desks share nothing but the database, as processes do."""
    tested = await an_app(database)
    contexts = cycle([GrantContext(database, app.state.limiter) for _ in range(4)])
    monkeypatch.setattr("hublet.oauth.routes.grant_context_of", lambda _request: next(contexts))
    body = redemption(await a_code(database, tested), client_id=tested.client_id)

    answers = await asyncio.gather(*(client.post(TOKEN, data=body) for _ in range(8)))

    [given] = [answer.json() for answer in answers if answer.status_code == 200]
    assert not await works(client, given["access_token"])
    assert len(await published_events(database, AccessEnded)) == 1


async def test_no_one_time_value_is_taken_for_another(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    given = await tokens_of(client, database, app)
    started = await client.post("/oauth/device", data={"client_id": app.client_id})
    values = {
        "code": await a_code(database, app),
        "device_code": started.json()["device_code"],
        "refresh_token": given["refresh_token"],
        "access_token": given["access_token"],
        "user_code": started.json()["user_code"],
    }
    grants = {
        "code": "authorization_code",
        "device_code": "urn:ietf:params:oauth:grant-type:device_code",
        "refresh_token": "refresh_token",
    }

    answers = [
        await client.post(
            TOKEN,
            data={
                "grant_type": grant,
                parameter: value,
                "client_id": app.client_id,
                "redirect_uri": REDIRECT_URI,
                "code_verifier": VERIFIER,
            },
        )
        for parameter, grant in grants.items()
        for kind, value in values.items()
        if kind != parameter
    ]

    assert [error_of(answer) for answer in answers] == [(400, "invalid_grant")] * 12


async def test_a_changed_or_shortened_token_never_works(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    value = (await tokens_of(client, database, app))["access_token"]

    for changed in (value[:-1], value + "0", value[:-1] + "~", value.swapcase()):
        assert not await works(client, changed)


async def test_a_user_who_was_disabled_since_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    body = redemption(await a_code(database, app), client_id=app.client_id)
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1 WHERE name = 'ada'")

    response = await client.post(TOKEN, data=body)

    assert error_of(response) == (400, "invalid_grant")


async def test_too_many_requests_are_told_as_slow_down(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.core.http.exchange.Limiter.count", spent)

    response = await client.post(TOKEN, data={"grant_type": "refresh_token"})

    assert error_of(response) == (429, "slow_down")
    assert response.headers["retry-after"] == "7"


def spent(_limiter: object, policy: object, _key: str) -> object:
    from hublet.core.limits import RateLimit, RateLimitVerdict  # noqa: PLC0415 - only here

    assert isinstance(policy, RateLimit)
    return RateLimitVerdict(policy, False, 0, 7)


async def test_no_value_that_was_issued_is_in_the_database(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    code = await a_code(database, app)
    given = (await client.post(TOKEN, data=redemption(code), headers=app.basic)).json()
    again = (await refreshed(client, app, given["refresh_token"])).json()
    values = [code, app.secret, *given.values(), *again.values()]

    async with database.read() as conn:
        rows = [
            str([bytes(each) if isinstance(each, memoryview) else each for each in row])
            for table in ("tokens", "oauth_codes", "oauth_refreshes", "oauth_accesses", "outbox")
            for row in await conn.fetch_all(f"SELECT * FROM {table}")
        ]

    secrets = [value for value in values if isinstance(value, str) and len(value) > 40]
    assert len(secrets) == 6
    assert not [row for row in rows for value in secrets if value in row]


async def test_with_openid_an_id_token_tells_who_signed_in(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, scopes=["openid"])
    at = clock.now() - timedelta(hours=1)
    code = await a_code(database, app, nonce="n-1", session_id="s" * 24, authenticated_at=at)

    given = (await client.post(TOKEN, data=redemption(code, client_id=app.client_id))).json()
    again = (await refreshed(client, app, given["refresh_token"])).json()

    claims, renewed = claims_of(given["id_token"]), claims_of(again["id_token"])
    assert (claims["aud"], claims["nonce"], claims["sid"]) == (app.client_id, "n-1", "s" * 24)
    assert claims["auth_time"] == renewed["auth_time"] == int(at.timestamp())
    assert claims["at_hash"] == at_hash(given["access_token"])
    assert renewed["at_hash"] == at_hash(again["access_token"])
    assert renewed["sub"] == claims["sub"]
    # OpenID Connect Core, 12.2: a refresh has no nonce of its own.
    assert "nonce" not in renewed


def claims_of(id_token: str) -> dict[str, Any]:
    payload = id_token.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=="))
    return claims
