"""The MCP server as assistants see it: both eras, lists of tools, schemas, resources."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from assistants import ADDRESS, MODES, assistant, refused, switch_on, text_of
from hublet.core.database import Database
from hublet.mcp import routes
from hublet.mcp.records import DEFAULT_TOOLS, SWITCHED_TOOLS
from hublet.mcp.repo_files import FileUri
from mcp import MCPError
from people import Headers, sign_in
from repositories import a_push, a_repo

ALL = [tool.name for tool in SWITCHED_TOOLS]
FOR_EVERYBODY = {"hf_whoami", "hub_repo_search", "hub_repo_details", "hf_fs", "hf_discussions"}


async def names(app: FastAPI, headers: Headers | None = None) -> set[str]:
    async with assistant(app, headers) as caller:
        return {tool.name for tool in (await caller.list_tools()).tools}


@pytest.mark.parametrize("mode", MODES)
async def test_both_eras_list_and_call_tools_at_one_address(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers, mode: str
) -> None:
    await a_repo(client, ada, "ada/engine")

    async with assistant(app, ada, mode=mode) as caller:
        listed = await caller.list_tools()
        found = await caller.call_tool("hub_repo_search", {"author": "ada"})

    assert {tool.name for tool in listed.tools} == {"hf_whoami", *DEFAULT_TOOLS}
    assert [repo["id"] for repo in found.structured_content["repos"]] == ["ada/engine"]
    assert '"ada/engine"' in text_of(found.content)


async def test_who_has_no_token_has_the_tools_that_need_none(app: FastAPI) -> None:
    assert await names(app) == FOR_EVERYBODY


async def test_a_person_switches_tools_and_none_is_a_choice(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    await switch_on(client, ada, "hf_jobs", "dynamic_space")
    assert await names(app, ada) == {"hf_whoami", "hf_jobs"}

    await switch_on(client, ada)
    assert await names(app, ada) == set()


async def test_tools_that_a_token_can_never_use_are_not_listed(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await switch_on(client, ada, *ALL)
    scoped = await sign_in(database, "ada", scopes=["read-repos", "jobs"])

    assert await names(app, ada) == {"hf_whoami", *ALL}
    assert await names(app, scoped) == FOR_EVERYBODY | {"hf_jobs"}


async def test_every_tool_has_schemas_and_hints(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    await switch_on(client, ada, *ALL)
    async with assistant(app, ada) as caller:
        tools = {tool.name: tool for tool in (await caller.list_tools()).tools}

    for tool in tools.values():
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.annotations is not None
    acting = {name for name, tool in tools.items() if not tool.annotations.read_only_hint}
    assert acting == {each.name for each in SWITCHED_TOOLS if not each.read_only}
    assert not acting & set(DEFAULT_TOOLS)
    assert [name for name, each in tools.items() if each.annotations.destructive_hint] == [
        "hf_jobs"
    ]


async def test_a_tool_that_is_switched_off_says_where(app: FastAPI, ada: Headers) -> None:
    sentence = await refused(app, ada, "hf_jobs", operation="ps")

    assert sentence == "hf_jobs is switched off: see http://hub.test/settings/mcp."


async def test_an_unknown_tool_is_an_error_of_the_protocol(app: FastAPI, ada: Headers) -> None:
    async with assistant(app, ada) as caller:
        with pytest.raises(MCPError, match=r"There is no tool nonsense\."):
            await caller.call_tool("nonsense", {})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param({"limit": 0}, "limit must be at least 1.", id="too small"),
        pytest.param({"words": "x"}, "words is not a known field.", id="unknown"),
        pytest.param({"query": "a\x00b"}, "NUL", id="what no database takes"),
    ],
)
async def test_bad_arguments_are_refused_by_name(
    app: FastAPI, arguments: dict[str, Any], sentence: str
) -> None:
    assert sentence in await refused(app, None, "hub_repo_search", **arguments)


async def test_files_are_resources(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/poems", type="dataset", private=True)
    await a_push(
        database, repo, {"a b.txt": b"Roses", "x.bin": b"\x00\x01", "big.txt": b"x" * 70_000}
    )
    at = "hf://datasets/ada/poems"

    async with assistant(app, ada) as caller:
        templates = (await caller.list_resource_templates()).resource_templates
        [content] = (await caller.read_resource(f"{at}/a%20b.txt")).contents
        for path, sentence in (
            ("x.bin", "is no text"),
            ("big.txt", "more than 60000"),
            ("none", "none"),
        ):
            with pytest.raises(MCPError, match=sentence):
                await caller.read_resource(f"{at}/{path}")
    async with assistant(app) as stranger:
        with pytest.raises(MCPError, match=r"[Rr]epository"):
            await stranger.read_resource(f"{at}/a%20b.txt")

    assert "hf://datasets/{owner}/{name}/{+path}" in {each.uri_template for each in templates}
    assert (content.text, content.mime_type) == ("Roses", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    "uri",
    [
        "hf://ada/engine",
        "hf://datasets/ada/poems@refs%2Fpr%2F1/a/b%20c.txt",
        "hf://spaces/ada/app@v1.0/README.md",
        "hf://buckets/ada/things/x",
    ],
)
def test_an_address_is_written_as_it_was_read(uri: str) -> None:
    assert str(FileUri.parse(uri)) == uri


@pytest.mark.parametrize(
    "uri",
    ["", "http://x/y", "hf://ada", "hf://ada/", "hf://a b/c", "hf://ada/x@/y", "hf://a/b/../c"],
)
def test_what_is_no_address_is_refused(uri: str) -> None:
    with pytest.raises(Exception, match="uri"):
        FileUri.parse(uri)


async def test_a_browser_sees_a_page_and_a_program_that_wants_a_stream_gets_405(
    client: httpx2.AsyncClient,
) -> None:
    page = await client.get("/mcp", headers={"Accept": "text/html"})
    stream = await client.get("/mcp", headers={"Accept": "text/event-stream"})

    assert (page.status_code, stream.status_code) == (200, 405)
    assert ADDRESS in page.text
    assert stream.headers["allow"] == "POST"


async def test_without_the_extra_it_says_what_to_install(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_has_sdk", lambda: False)

    response = await client.post("/mcp", json={"jsonrpc": "2.0"})

    assert response.status_code == 501
    assert "pip install 'hublet[mcp]'" in response.json()["error"]
