"""Rules of MCP tools: a space is a tool of a user as long as it exists and the user may see it."""

from collections.abc import Sequence

from pydantic import MISSING

from hublet.core.database import Connection, Reader
from hublet.core.errors import NotFound
from hublet.mcp import store
from hublet.mcp.records import DEFAULT_TOOLS, SWITCHED_TOOLS, WHO_AM_I, Audience, ChosenTools
from hublet.mcp.schemas import UpdateMcpTools
from hublet.repos import service as repos
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.tokens.records import Caller


class SpaceToolNotFound(NotFound):
    """The space does not exist, or the caller may not see it."""

    def __init__(self, index: int, full_name: str) -> None:
        super().__init__(
            f"spaceTools[{index}]: there is no space {full_name}, or you cannot see it."
        )


async def tools_of(conn: Reader, caller: Caller) -> ChosenTools:
    chosen = await store.list_spaces(conn, user_id=caller.user_id)
    return ChosenTools(
        built_in=await _built_in(conn, caller.user_id),
        spaces=tuple([each for each in chosen if await repos.may(conn, caller, each, Right.see)]),
    )


async def _built_in(conn: Reader, user_id: str) -> tuple[str, ...]:
    chosen = await store.find_built_in(conn, user_id=user_id)
    return DEFAULT_TOOLS if chosen is None else tuple(chosen)


async def enabled_tools(conn: Reader, caller: Caller | None) -> frozenset[str]:
    """Return the built-in tools that are switched on for a caller; none when they chose none."""
    if caller is None:
        for_everybody = (each for each in SWITCHED_TOOLS if each.audience is Audience.everybody)
        return frozenset({WHO_AM_I.name, *(each.name for each in for_everybody)})
    chosen = await _built_in(conn, caller.user_id)
    return frozenset({WHO_AM_I.name, *chosen}) if chosen else frozenset()


async def update(conn: Connection, caller: Caller, request: UpdateMcpTools) -> ChosenTools:
    """Replace the lists that the request names; the other stays."""
    # Without a lock two requests at once would mix their spaces.
    await conn.lock(f"tools of {caller.user_id}")
    if request.spaceTools is not MISSING:
        spaces = await _find_spaces(conn, caller, request.spaceTools)
        await store.set_spaces(conn, [space.id for space in spaces], user_id=caller.user_id)
    if request.builtInTools is not MISSING:
        await store.set_built_in(conn, request.builtInTools, user_id=caller.user_id)
    return await tools_of(conn, caller)


async def _find_spaces(conn: Reader, caller: Caller, names: Sequence[str]) -> list[Repo]:
    """Return each space once; two names may mean the same one, after a rename."""
    spaces: dict[str, Repo] = {}
    for index, full_name in enumerate(names):
        namespace, _, name = full_name.partition("/")
        address = RepoAddress(type=RepoType.space, namespace=namespace, name=name)
        try:
            space = await repos.get(conn, caller, address, Right.see)
        except RepoNotFound:
            raise SpaceToolNotFound(index, full_name) from None
        spaces[space.id] = space
    return list(spaces.values())
