"""Who may use the MCP server: challenges, resource binding, hosts, origins, and a whole login."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from fastapi import FastAPI
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from mcp_types import CallToolResult

from assistants import ADDRESS, assistant, switch_on
from hublet.core.database import Database
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, TokenRole
from oauth.browser_flows import answer_consent, signed_in
from people import Headers, a_user, sign_in

METADATA = "http://hub.test/.well-known/oauth-protected-resource/mcp"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
CALLBACK = "http://localhost:3030/callback"


def call_of(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


WHO = call_of("hf_whoami")


async def post(
    client: httpx2.AsyncClient, message: dict[str, Any], *, path: str = "/mcp", **headers: str
) -> httpx2.Response:
    return await client.post(path, json=message, headers={**ACCEPT, **headers})


async def test_the_documents_say_where_tokens_come_from(client: httpx2.AsyncClient) -> None:
    document = (await client.get("/.well-known/oauth-protected-resource/mcp")).json()
    root = (await client.get("/.well-known/oauth-protected-resource")).json()

    assert (document["resource"], root["resource"]) == (ADDRESS, "http://hub.test")
    assert document["authorization_servers"] == ["http://hub.test"]
    assert document["bearer_methods_supported"] == ["header"]
    assert {"read-repos", "jobs", "webhooks", "write-discussions"} <= set(
        document["scopes_supported"]
    )


async def test_login_in_the_address_challenges_who_has_no_token(client: httpx2.AsyncClient) -> None:
    plain = await post(client, WHO)
    forced = await post(client, WHO, path="/mcp?login")

    assert (plain.status_code, forced.status_code) == (200, 401)
    challenge = forced.headers["www-authenticate"]
    assert f'resource_metadata="{METADATA}"' in challenge
    assert 'scope="openid profile read-repos"' in challenge


async def test_a_bad_token_is_challenged(client: httpx2.AsyncClient) -> None:
    response = await post(client, WHO, Authorization="Bearer hf_nonsense")

    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert METADATA in response.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        pytest.param(None, 200, id="a token with the role write"),
        pytest.param(["jobs"], 200, id="a fine-grained token with the scope"),
        pytest.param(["read-repos"], 403, id="one without it"),
    ],
)
async def test_a_tool_asks_for_its_scope(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    scopes: list[str] | None,
    status: int,
) -> None:
    await switch_on(client, ada, "hf_jobs")
    headers = await sign_in(database, "ada", scopes=scopes)

    response = await post(client, call_of("hf_jobs", operation="ps"), **headers)

    assert response.status_code == status
    if status == 403:
        challenge = response.headers["www-authenticate"]
        assert 'error="insufficient_scope", scope="jobs"' in challenge
        assert METADATA in challenge


async def test_a_tool_for_the_signed_in_is_off_for_others(client: httpx2.AsyncClient) -> None:
    response = await post(client, call_of("hf_jobs", operation="ps"))

    assert "switched off" in response.text


async def a_bound_token(database: Database, resource: str | None) -> Headers:
    user = await a_user(database, "ada")
    granted = Grants(everywhere=frozenset({Scope.openid, Scope.read_repos}))
    async with database.transaction() as conn:
        token, value = await tokens.issue(
            conn, user_id=user.id, name="x", role=TokenRole.fine_grained, grants=granted
        )
        await conn.execute("UPDATE tokens SET resource = $1 WHERE id = $2", resource, token.id)
    return {"Authorization": f"Bearer {value}"}


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        pytest.param(None, 200, id="for the whole hub"),
        pytest.param("/mcp", 200, id="for the server"),
        pytest.param("/api /mcp", 200, id="for it and more"),
        pytest.param("/api", 401, id="for another part"),
        pytest.param("/mcpx", 401, id="for another name"),
    ],
)
async def test_a_token_for_another_part_of_the_hub_is_refused(
    client: httpx2.AsyncClient, database: Database, resource: str | None, status: int
) -> None:
    headers = await a_bound_token(database, resource)

    assert (await post(client, WHO, **headers)).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "hub.test"}, 200, id="the hub's own name"),
        pytest.param({"Host": "127.0.0.1:8000"}, 200, id="a number"),
        pytest.param({"Host": "evil.example"}, 421, id="a name that was made to lead here"),
        pytest.param({"Origin": "http://hub.test"}, 200, id="a page of the hub"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="a page of another site"),
        pytest.param({"Origin": "null"}, 403, id="a page of nowhere"),
    ],
)
async def test_pages_of_other_sites_are_refused(
    client: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    assert (await post(client, WHO, **headers)).status_code == status


class _Memory:
    """Keeps what a client of the SDK would keep on a disk."""

    tokens: Any = None
    client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class _Person:
    """Signs in with a browser and allows whatever an app asks for."""

    def __init__(self, browser: httpx2.AsyncClient) -> None:
        self.browser = browser
        self.asked: list[str] = []
        self.address = ""

    async def open(self, url: str) -> None:
        self.asked.append(dict(parse_qsl(urlsplit(url).query))["scope"])
        answer = await self.browser.get(url)
        if answer.status_code == 200:
            answer = await answer_consent(self.browser, answer)
        self.address = answer.headers["location"]
        assert "code=" in self.address, self.address

    async def come_back(self) -> AuthorizationCodeResult:
        found = dict(parse_qsl(urlsplit(self.address).query))
        return AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )


async def test_the_sdk_registers_signs_in_and_steps_up(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await switch_on(client, ada, "hub_repo_search", "hf_jobs")
    await signed_in(client, database, "ada")
    person, memory = _Person(client), _Memory()
    provider = OAuthClientProvider(
        f"{ADDRESS}?login",
        OAuthClientMetadata(redirect_uris=[CALLBACK], client_name="Assistant"),
        memory,
        person.open,
        person.come_back,
    )

    async with assistant(app, auth=provider, address=f"{ADDRESS}?login") as caller:
        listed = {tool.name for tool in (await caller.list_tools()).tools}
        result = await caller.call_tool("hf_jobs", {"operation": "ps"})

    assert listed == {"hf_whoami", "hub_repo_search", "hf_jobs"}
    assert isinstance(result, CallToolResult)
    assert result.structured_content == {
        "jobs": [],
        "is_over": None,
        "log": None,
        "log_is_cut": False,
    }
    assert person.asked[0] == "openid profile read-repos"
    assert set(person.asked[-1].split()) == {"openid", "profile", "read-repos", "jobs"}
    async with database.read() as conn:
        bound = await conn.fetch_all("SELECT resource FROM tokens WHERE kind = 'oauth'")
    assert {row["resource"] for row in bound} == {"/mcp"}
