"""The two documents by which clients find everything."""

from dataclasses import replace

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.tokens.records import Scope

PATHS = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]


@pytest.mark.parametrize("path", PATHS)
async def test_the_document_tells_where_everything_is(
    client: httpx2.AsyncClient, path: str
) -> None:
    response = await client.get(path)

    assert response.status_code == 200
    document = response.json()
    addresses = {name: value for name, value in document.items() if isinstance(value, str)}
    assert addresses == {
        "issuer": "http://hub.test",
        "authorization_endpoint": "http://hub.test/oauth/authorize",
        "token_endpoint": "http://hub.test/oauth/token",
        "userinfo_endpoint": "http://hub.test/oauth/userinfo",
        "jwks_uri": "http://hub.test/oauth/jwks",
        "device_authorization_endpoint": "http://hub.test/oauth/device",
        "revocation_endpoint": "http://hub.test/oauth/revoke",
        "introspection_endpoint": "http://hub.test/oauth/introspect",
        "end_session_endpoint": "http://hub.test/oauth/logout",
        "registration_endpoint": "http://hub.test/oauth/register",
        "service_documentation": "http://hub.test/docs",
    }
    assert document["scopes_supported"] == [scope.value for scope in Scope]
    assert document["grant_types_supported"] == [
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    ]
    assert document["response_types_supported"] == ["code"]
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert document["client_id_metadata_document_supported"] is True


async def test_both_addresses_give_the_same(client: httpx2.AsyncClient) -> None:
    first, second = [await client.get(path) for path in PATHS]

    assert first.content == second.content
    assert first.headers["ETag"] == second.headers["ETag"]


async def test_a_client_may_keep_it_and_a_script_of_any_origin_may_read_it(
    client: httpx2.AsyncClient,
) -> None:
    first = await client.get(PATHS[0], headers={"Origin": "https://app.example"})
    again = await client.get(PATHS[0], headers={"If-None-Match": first.headers["ETag"]})

    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert first.headers["Access-Control-Allow-Origin"] == "*"
    assert again.status_code == 304


async def test_the_issuer_of_a_local_hub_is_the_name_that_was_called(app: FastAPI) -> None:
    settings = app.state.settings
    server = replace(settings.server, base_url=None, port=8000)
    app.state.settings = replace(settings, server=server)
    transport = httpx2.ASGITransport(app=with_edge(app))

    for address in ("http://127.0.0.1:8000", "http://localhost:8000"):
        async with httpx2.AsyncClient(transport=transport, base_url=address) as client:
            assert (await client.get(PATHS[0])).json()["issuer"] == address
