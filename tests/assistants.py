"""Assistants: clients of the official SDK that call the MCP server of a hub."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from hublet.app import with_edge
from mcp import Client
from people import Headers

ADDRESS = "http://hub.test/mcp"
# Both eras of the protocol: without sessions, and with a handshake.
MODES = ("auto", "legacy")


@asynccontextmanager
async def assistant(
    app: FastAPI,
    headers: Headers | None = None,
    *,
    mode: Any = "auto",
    auth: httpx2.Auth | None = None,
    address: str = ADDRESS,
) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, auth=auth) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def switch_on(client: httpx2.AsyncClient, headers: Headers, *tools: str) -> None:
    response = await client.patch(
        "/api/settings/mcp", headers=headers, json={"builtInTools": list(tools)}
    )
    assert response.status_code == 200, response.text


async def ask(app: FastAPI, headers: Headers | None, tool: str, **arguments: Any) -> Any:
    """Return what a tool answers."""
    async with assistant(app, headers) as client:
        result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(app: FastAPI, headers: Headers | None, tool: str, **arguments: Any) -> str:
    """Return the sentence with which a tool refuses."""
    async with assistant(app, headers) as client:
        result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert result.is_error
    return text_of(result.content)


def text_of(content: Sequence[Any]) -> str:
    return "".join(part.text for part in content)
