"""HTTP for the MCP tools that a user offers to programs."""

from hublet.core.http import Conn, ReadConn, Router
from hublet.mcp import service
from hublet.mcp.schemas import McpTools, UpdateMcpTools
from hublet.tokens.auth import AccountOwner, AccountReader

router = Router(prefix="/api/settings/mcp", tags=["mcp"])
ROUTERS: tuple[Router, ...] = (router,)


@router.get("")
async def get_mcp_tools(conn: ReadConn, caller: AccountReader) -> McpTools:
    """Show which built-in tools and which spaces the caller uses as MCP tools."""
    return McpTools.of(await service.tools_of(conn, caller))


@router.patch("", responses={404: {"description": "There is no such space."}})
async def update_mcp_tools(conn: Conn, caller: AccountOwner, request: UpdateMcpTools) -> McpTools:
    """Choose the built-in tools and the spaces, each as a whole list; one left out stays.

    A space that is deleted, or that the caller may not see any more, leaves the list.
    """
    return McpTools.of(await service.update(conn, caller, request))
