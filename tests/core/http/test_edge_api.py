"""What holds for every request, whatever the route."""

from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import create_application, with_edge
from hublet.core.config import Settings
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.http.routers import fast_handlers
from people import Headers, sign_in

WHOAMI = "/api/whoami-v2"
REVOKE = "/api/credentials/revoke"


def reaching(app: FastAPI, **changes: object) -> httpx2.AsyncClient:
    """A client of the same hub with other settings of one group, such as `limits`."""
    settings: Settings = app.state.settings
    group, values = changes.popitem()
    app.state.settings = replace(
        settings,
        **{group: replace(getattr(settings, group), **values)},  # type: ignore[arg-type]
    )
    transport = httpx2.ASGITransport(app=with_edge(app))
    return httpx2.AsyncClient(transport=transport, base_url="http://hub.test")


async def test_the_routes_a_benchmark_names_are_dispatched_by_the_edge(app: FastAPI) -> None:
    assert fast_handlers(app.routes).keys() == {
        ("GET", WHOAMI),
        ("GET", "/api/settings/webhooks"),
        ("GET", "/api/notifications"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/device"),
        ("POST", "/oauth/revoke"),
        ("POST", "/oauth/introspect"),
        ("GET", "/oauth/userinfo"),
        ("POST", "/oauth/userinfo"),
    }


async def test_every_answer_has_a_request_id_of_its_own(client: httpx2.AsyncClient) -> None:
    first, second = await client.get("/healthz"), await client.get("/nothing-here")

    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/healthz", "/api/nothing", "/"])
async def test_security_headers_are_on_every_answer(client: httpx2.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "strict-transport-security" not in headers


async def test_an_answer_with_data_is_neither_kept_nor_run(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    headers = (await client.get(WHOAMI, headers=ada)).headers

    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


async def test_a_page_is_not_framed_and_tells_nobody_where_one_came_from(
    client: httpx2.AsyncClient,
) -> None:
    headers = (await client.get("/docs")).headers

    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"


async def test_a_hot_answer_is_open_to_scripts_of_other_origins(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    answer = await client.get(WHOAMI, headers=ada | {"origin": "https://app.example"})

    assert answer.headers["access-control-allow-origin"] == "*"
    assert "X-Request-Id" in answer.headers["access-control-expose-headers"]


async def test_https_is_remembered_by_browsers(app: FastAPI) -> None:
    async with reaching(app, server={"base_url": "https://hub.test"}) as client:
        headers = (await client.get("/healthz")).headers

    assert headers["strict-transport-security"] == "max-age=31536000"


async def test_an_unknown_address_is_told_in_the_one_form(client: httpx2.AsyncClient) -> None:
    response = await client.get("/api/nothing")

    assert response.status_code == 404
    assert response.json() == {"error": "There is nothing at this address: GET /api/nothing."}
    assert response.headers["x-error-message"] == response.json()["error"]


async def test_a_wrong_method_is_told_in_the_one_form(client: httpx2.AsyncClient) -> None:
    response = await client.put("/healthz")

    assert response.status_code == 405
    assert response.json() == {"error": "PUT is not possible at /healthz."}
    assert response.headers["allow"] == "GET"


async def test_head_is_get_without_the_body(client: httpx2.AsyncClient, ada: Headers) -> None:
    got = await client.get(WHOAMI, headers=ada)
    asked = await client.head(WHOAMI, headers=ada)

    assert asked.status_code == 200
    assert asked.content == b""
    assert asked.headers["content-length"] == got.headers["content-length"]


async def test_a_message_that_is_not_ascii_stays_out_of_the_header(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.get("/api/größe")

    assert response.json() == {"error": "There is nothing at this address: GET /api/größe."}
    assert "x-error-message" not in response.headers


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="cut off"),
        pytest.param(b"\xff\xfe{}", id="not UTF-8"),
        pytest.param(b"[" * 100_000, id="nested too deeply"),
        pytest.param(b'{"credentials": [' + b"9" * 5000 + b"]}", id="a number too long"),
        pytest.param(b'{"credentials": ["\\ud800"]}', id="half a surrogate pair"),
        pytest.param(b'{"credentials": NaN}', id="not a number"),
        pytest.param(b"null", id="null"),
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"credentials": ["a\\u0000b"]}', id="NUL"),
    ],
)
async def test_a_broken_body_is_a_400(client: httpx2.AsyncClient, body: bytes) -> None:
    response = await client.post(REVOKE, content=body, headers={"content-type": "application/json"})

    assert response.status_code == 400
    assert response.json().keys() == {"error"}


async def test_a_body_in_another_format_is_a_400(client: httpx2.AsyncClient) -> None:
    response = await client.post(REVOKE, data={"credentials": "hf_1"})

    assert response.status_code == 400


async def test_nothing_has_nul_in_its_address(client: httpx2.AsyncClient) -> None:
    path = await client.get("/api/users/a%00b/overview")
    query = await client.get("/healthz?x=%00")

    assert (path.status_code, path.json()) == (
        404,
        {"error": "There is nothing at an address with the NUL character."},
    )
    assert (query.status_code, query.json()) == (
        400,
        {"error": "The query must not contain the NUL character."},
    )


async def test_a_body_that_says_it_is_too_large_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post(REVOKE, content=b"x" * 1_048_577)

    assert response.status_code == 413
    assert response.json() == {"error": "The body must have at most 1048576 bytes."}


async def test_a_body_that_turns_out_too_large_is_refused(client: httpx2.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 65_536

    response = await client.post(REVOKE, content=endless())

    assert response.status_code == 413


async def test_a_body_of_unknown_length_is_read(client: httpx2.AsyncClient) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b'{"credentials":'
        yield b' ["hf_unknown"]}'

    response = await client.post(
        REVOKE, content=parts(), headers={"content-type": "application/json"}
    )

    assert response.status_code == 202


async def test_browsers_may_call_the_api_from_anywhere(client: httpx2.AsyncClient) -> None:
    preflight = await client.options(
        WHOAMI, headers={"origin": "https://app.example", "access-control-request-method": "GET"}
    )
    page = await client.options("/docs")

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    # No cookie ever counts across origins.
    assert "access-control-allow-credentials" not in preflight.headers
    assert "access-control-allow-origin" not in page.headers


async def test_the_quota_is_shown_and_kept(app: FastAPI) -> None:
    async with reaching(app, limits={"anonymous_requests": 2}) as client:
        answers = [await client.get("/api/agent-harnesses") for _ in range(3)]

    assert [a.status_code for a in answers] == [200, 200, 429]
    assert answers[0].headers["ratelimit"] == '"api";r=1;t=300'
    assert answers[0].headers["ratelimit-policy"] == '"fixed window";"api";q=2;w=300'
    assert answers[2].headers["retry-after"] == "300"
    assert answers[2].json()["error"].startswith("Too many requests: 2 are allowed")


async def test_guessed_tokens_count_for_the_address(app: FastAPI) -> None:
    async with reaching(app, limits={"anonymous_requests": 2}) as client:
        answers = [
            await client.get(WHOAMI, headers={"authorization": f"Bearer guess{n}"})
            for n in range(3)
        ]

    assert [a.status_code for a in answers] == [401, 401, 429]


async def test_a_known_user_has_a_quota_of_their_own(app: FastAPI, ada: Headers) -> None:
    async with reaching(app, limits={"anonymous_requests": 1}) as client:
        answers = [await client.get(WHOAMI, headers=ada) for _ in range(5)]

    assert [a.status_code for a in answers] == [200] * 5


async def test_people_who_share_an_address_do_not_share_a_quota(
    app: FastAPI, database: Database
) -> None:
    people = [await sign_in(database, f"user-{n}") for n in range(4)]

    # Each token is unknown at first, and looked up.
    async with reaching(app, limits={"anonymous_requests": 1}) as client:
        answers = [await client.get(WHOAMI, headers=person) for person in people]
        cached = [await client.get(WHOAMI, headers=person) for person in people]

    assert [a.status_code for a in [*answers, *cached]] == [200] * 8
    assert answers[0].headers["ratelimit"] == '"api";r=29999;t=300'


async def test_a_user_who_asks_too_much_is_refused_also_at_the_first_look(
    app: FastAPI, database: Database
) -> None:
    ada, again = await sign_in(database, "ada"), await sign_in(database, "ada")

    async with reaching(app, limits={"authenticated_requests": 1}) as client:
        answers = [await client.get(WHOAMI, headers=token) for token in (ada, again)]

    assert [a.status_code for a in answers] == [200, 429]


async def test_health_checks_are_not_limited(app: FastAPI) -> None:
    async with reaching(app, limits={"anonymous_requests": 1}) as client:
        answers = [await client.get("/healthz") for _ in range(3)]

    assert [a.status_code for a in answers] == [200] * 3
    assert "ratelimit" not in answers[0].headers


async def test_a_forwarded_address_counts_only_behind_a_trusted_proxy(app: FastAPI) -> None:
    async def statuses(client: httpx2.AsyncClient) -> list[int]:
        return [
            (
                await client.get("/api/agent-harnesses", headers={"x-forwarded-for": f"1.2.3.{n}"})
            ).status_code
            for n in range(3)
        ]

    async with reaching(app, limits={"anonymous_requests": 1}) as client:
        assert await statuses(client) == [200, 429, 429]
    proxies = (ip_network("127.0.0.1/32"),)
    async with reaching(app, server={"trusted_proxies": proxies}) as client:
        assert await statuses(client) == [200, 200, 200]


async def test_a_database_that_is_away_is_a_503(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise DatabaseUnavailable("host db.internal refused")

    monkeypatch.setattr(database, "check", away)

    response = await client.get("/readyz")

    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json() == {
        "error": "The database cannot answer right now; please try again shortly."
    }


async def test_an_unexpected_error_tells_only_the_request_id(
    app: FastAPI, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise RuntimeError("hf_secret detail")

    monkeypatch.setattr(database, "check", broken)

    # Not held against the description: no answer of ours promises a 500.
    async with reaching(app, limits={}) as client:
        response = await client.get("/readyz")

    assert response.status_code == 500
    assert response.json() == {
        "error": "Something went wrong on our side. Tell the operator the request id "
        f"{response.headers['x-request-id']}."
    }


async def test_metrics_count_requests_by_route(client: httpx2.AsyncClient, ada: Headers) -> None:
    await client.get(WHOAMI, headers=ada)
    await client.get("/api/nothing/at/all")

    text = (await client.get("/metrics")).text

    assert 'hublet_requests_total{method="GET",route="/api/whoami-v2",status="200"} 1.0' in text
    assert "/api/nothing/at/all" not in text
    assert "hublet_tasks_parked 0.0" in text


async def test_metrics_can_be_kept_for_the_holder_of_a_token(app: FastAPI) -> None:
    server = {"metrics_token": "s3cret-metrics"}
    object.__setattr__(app.state.database.hub.settings.server, "metrics_token", "s3cret-metrics")
    async with reaching(app, server=server) as client:
        without = await client.get("/metrics")
        wrong = await client.get("/metrics", headers={"authorization": "Bearer nope"})
        right = await client.get("/metrics", headers={"authorization": "Bearer s3cret-metrics"})

    assert [without.status_code, wrong.status_code, right.status_code] == [401, 401, 200]


async def test_the_clients_start_up_questions_are_answered(client: httpx2.AsyncClient) -> None:
    harnesses = await client.get("/api/agent-harnesses")
    telemetry = await client.head("/api/telemetry/some/topic")

    assert harnesses.json() == {"standardEnvVars": [], "harnesses": {}}
    assert telemetry.status_code == 204


async def test_the_clock_moves_only_in_test_mode(
    client: httpx2.AsyncClient, settings: Settings, database: Database
) -> None:
    assert (
        await client.post("/api/test-mode/clock", json={"advanceSeconds": 60})
    ).status_code == 404

    object.__setattr__(database.hub.settings.server, "test_mode", True)
    app = create_application(database)
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as testing:
        moved = await testing.post("/api/test-mode/clock", json={"advanceSeconds": 60})

    assert moved.status_code == 200
    assert moved.json() == {"now": moved.json()["now"], "offsetSeconds": 60.0}


@pytest.mark.parametrize(
    ("host", "address"),
    [
        pytest.param("localhost:8000", "http://localhost:8000", id="by name"),
        pytest.param("127.0.0.1:8000", "http://127.0.0.1:8000", id="by number"),
        pytest.param("[::1]:8000", "http://[::1]:8000", id="by an IPv6 number"),
        pytest.param("127.0.0.1:9000", "http://localhost:8000", id="another port"),
        pytest.param("evil.example", "http://localhost:8000", id="a foreign name"),
    ],
)
async def test_links_lead_to_the_local_name_that_was_called(
    app: FastAPI, host: str, address: str
) -> None:
    local = {"base_url": None, "host": "127.0.0.1", "port": 8000}
    async with reaching(app, server=local) as client:
        page = await client.get("/", headers={"host": host})
        elsewhere = app.state.settings.base_url

    assert f"HF_ENDPOINT={address}" in page.text
    assert elsewhere == "http://localhost:8000"


async def test_an_address_that_is_set_is_used_whatever_was_called(app: FastAPI) -> None:
    async with reaching(app, server={"base_url": "https://hub.example"}) as client:
        page = await client.get("/", headers={"host": "127.0.0.1:80"})

    assert "HF_ENDPOINT=https://hub.example" in page.text
