"""HTTP for the MCP server, its metadata, and the tools that a user offers to programs."""

import asyncio
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.errors import HubError, InvalidRequest, NotImplementedHere
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.pages import Templates, page_response
from hublet.mcp import service
from hublet.mcp.auth import (
    METADATA_PATH,
    ProtectedResource,
    authenticate,
    check_origin,
    check_scopes,
    describe_resource,
)
from hublet.mcp.records import MCP_PATH, TOOL_INFOS
from hublet.mcp.schemas import McpTools, UpdateMcpTools
from hublet.tokens.auth import AccountOwner, AccountReader
from hublet.tokens.records import Caller

router = Router(prefix="/api/settings/mcp", tags=["mcp"])
server_router = Router(tags=["mcp"])
ROUTERS: tuple[Router, ...] = (router, server_router)

_NO_TOKEN_NEEDED: dict[str, Any] = {"security": [{}, {"bearer": []}]}
_JSON_RPC = {"type": "object", "properties": {"jsonrpc": {"const": "2.0"}}, "required": ["jsonrpc"]}
_MESSAGE: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": _JSON_RPC}}},
    **_NO_TOKEN_NEEDED,
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer to the message: JSON, or events with progress before it.",
        "content": {"application/json": {}, "text/event-stream": {}},
    },
    202: {"description": "A notification was taken."},
    # Of the hub, or of the protocol.
    400: {
        "description": "No message of the protocol, or another media type than JSON.",
        "content": {"application/json": {}},
    },
    406: {"description": "Accept must have application/json and text/event-stream."},
    421: {"description": "The header Host has a name that is not the hub's."},
    501: {"description": "The extra hublet[mcp] is not installed."},
}
_templates = Templates("hublet.mcp")


@router.get("")
async def get_mcp_tools(conn: ReadConn, caller: AccountReader) -> McpTools:
    """Show which built-in tools and which spaces the caller uses as MCP tools.

    Who has never chosen has the built-in tools that change nothing.
    """
    return McpTools.of(await service.tools_of(conn, caller))


@router.patch("", responses={404: {"description": "There is no such space."}})
async def update_mcp_tools(conn: Conn, caller: AccountOwner, request: UpdateMcpTools) -> McpTools:
    """Choose the built-in tools and the spaces, each as a whole list; one left out stays.

    A space that is deleted, or that the caller may not see any more, leaves the list.
    """
    return McpTools.of(await service.update(conn, caller, request))


class McpUnavailable(NotImplementedHere):
    def __init__(self) -> None:
        super().__init__(
            "This hub has no MCP server: the operator installs it with pip install 'hublet[mcp]'."
        )


@lru_cache(maxsize=1)
def _has_sdk() -> bool:
    return find_spec("mcp") is not None


# The module that has the SDK, once it was needed.
_loaded: list[Any] = []


async def _load_protocol() -> Any:
    """Import the SDK when it is first asked for, and in a thread: it takes half a second."""
    if not _loaded:
        _loaded.append(await asyncio.to_thread(import_module, "hublet.mcp.protocol"))
    return _loaded[0]


class _McpResponse(Response):
    """Answers a message by the SDK, which writes the response itself."""

    def __init__(
        self, database: Database, body: bytes, caller: Caller | None, enabled: frozenset[str]
    ) -> None:
        super().__init__()
        self._message = (database, body, caller, enabled)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        protocol = await _load_protocol()
        database, body, caller, enabled = self._message
        session = protocol.McpSession(
            database=database, caller=caller, enabled=enabled, stopping=asyncio.Event()
        )
        await protocol.serve(session, body, scope=scope, receive=receive, send=send)


@server_router.post(MCP_PATH, response_class=Response, responses=_ANSWERS, openapi_extra=_MESSAGE)
async def call_mcp(request: Request, database: Db) -> Response:
    """Speak the Model Context Protocol (streamable HTTP, without sessions) with an assistant.

    Without a token it has the tools that need none. With `login` in the query, or for a tool that
    needs more, the answer is a challenge that says where to sign in.
    """
    settings: Settings = request.app.state.settings
    check_origin(request, settings)
    if not _has_sdk():
        raise McpUnavailable
    caller = await authenticate(request, base_url=settings.base_url)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InvalidRequest("Content-Type must be application/json.")
    body = await request.body()
    async with database.read() as conn:
        enabled = await service.enabled_tools(conn, caller)
    check_scopes(body, caller, enabled, base_url=settings.base_url)
    return _McpResponse(database, body, caller, enabled)


class PostOnly(HubError):
    status = 405

    def __init__(self) -> None:
        super().__init__(
            "The MCP server takes POST alone: it has no sessions, and sends nothing unasked.",
            headers={"Allow": "POST"},
        )


@server_router.get(MCP_PATH, include_in_schema=False)
async def show_mcp(request: Request) -> Response:
    """Tell a person with a browser what is here; programs that look for a stream find none."""
    if "text/html" not in request.headers.get("accept", ""):
        raise PostOnly
    settings: Settings = request.app.state.settings
    body = _templates.render(
        "server.html",
        frame=None,
        address=f"{settings.base_url}{MCP_PATH}",
        tools=TOOL_INFOS,
        is_installed=_has_sdk(),
    )
    return page_response(body)


@server_router.get(METADATA_PATH, openapi_extra={"security": []})
async def get_hub_resource(request: Request) -> ProtectedResource:
    """Tell OAuth clients where tokens for this hub come from (RFC 9728)."""
    return describe_resource(request.app.state.settings.base_url, "")


@server_router.get(METADATA_PATH + MCP_PATH, openapi_extra={"security": []})
async def get_mcp_resource(request: Request) -> ProtectedResource:
    """Tell OAuth clients where tokens for the MCP server come from (RFC 9728)."""
    return describe_resource(request.app.state.settings.base_url, MCP_PATH)
