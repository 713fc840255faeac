"""Tokens for one part of the hub (RFC 8707), and documents of clients that the hub does not fetch."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from hublet.app import create_application, with_edge
from hublet.core.database import Database
from oauth.browser_flows import (
    VERIFIER,
    an_app,
    answer_consent,
    redirect_parameters,
    request_authorization,
    signed_in,
)
from people import Headers

MCP = "http://hub.test/mcp"


async def a_code(client: httpx2.AsyncClient, database: Database, resource: str | None) -> str:
    await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client, resource=resource)
    return redirect_parameters(await answer_consent(client, page))["code"]


async def redeem(client: httpx2.AsyncClient, code: str, **more: str) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": "loom",
        "redirect_uri": "https://app.example/callback",
        "code_verifier": VERIFIER,
    }
    return await client.post("/oauth/token", data=form | more)


async def resources(database: Database) -> set[str | None]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT resource FROM tokens WHERE kind = 'oauth'")
    return {row["resource"] for row in rows}


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        pytest.param(MCP, "/mcp", id="a part of the hub"),
        pytest.param(f"{MCP}/?x=1", "/mcp", id="written another way"),
        pytest.param("http://hub.test", None, id="the hub"),
        pytest.param(None, None, id="nothing"),
    ],
)
async def test_a_token_and_its_successors_remember_the_resource(
    client: httpx2.AsyncClient, database: Database, resource: str | None, kept: str | None
) -> None:
    code = await a_code(client, database, resource)

    first = (await redeem(client, code, **({"resource": resource} if resource else {}))).json()
    again = {
        "grant_type": "refresh_token",
        "refresh_token": first["refresh_token"],
        "client_id": "loom",
    }
    second = await client.post("/oauth/token", data=again)

    assert second.status_code == 200, second.text
    assert await resources(database) == {kept}


async def test_a_token_for_another_resource_than_was_agreed_to_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    code = await a_code(client, database, MCP)

    response = await redeem(client, code, resource="http://hub.test/api")

    assert (response.status_code, response.json()) == (
        400,
        {
            "error": "invalid_target",
            "error_description": "resource must be the one of the authorization request.",
        },
    )


@pytest.fixture
async def strict_client(database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    """Speaks to a hub that binds tokens, and fetches no documents of clients."""
    oauth = replace(database.hub.settings.oauth, bind_tokens=True, client_documents=False)
    settings = replace(database.hub.settings, oauth=oauth)
    database.hub = replace(database.hub, settings=settings)
    app = create_application(database)
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        yield client
    await app.state.callers.stop()


async def test_a_hub_may_hold_a_token_to_its_resource(
    strict_client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    code = await a_code(strict_client, database, MCP)
    token = (await redeem(strict_client, code)).json()["access_token"]
    strict_client.cookies.clear()
    bound = {"Authorization": f"Bearer {token}"}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "hf_whoami", "arguments": {}},
    }
    accept = {"Accept": "application/json, text/event-stream"}

    assert (await strict_client.post("/mcp", json=message, headers=bound | accept)).is_success
    assert (await strict_client.get("/api/whoami-v2", headers=bound)).status_code == 401
    assert (await strict_client.get("/oauth/userinfo", headers=bound)).status_code == 401
    assert (await strict_client.get("/api/whoami-v2", headers=ada)).status_code == 200


async def test_documents_of_clients_are_not_advertised_where_they_cannot_be_fetched(
    strict_client: httpx2.AsyncClient,
) -> None:
    here = (await strict_client.get("/.well-known/oauth-authorization-server")).json()
    refused = await request_authorization(
        strict_client, client_id="https://app.example/client.json"
    )

    assert here["client_id_metadata_document_supported"] is False
    assert refused.status_code in {400, 404}
    assert "registration_endpoint" in here
