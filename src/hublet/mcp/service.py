"""Rules of MCP tools: a space is one as long as it exists and its user may see it."""

from collections.abc import Sequence

from pydantic import MISSING

from hublet.core.database import Connection, Reader
from hublet.core.errors import NotFound
from hublet.mcp import store
from hublet.mcp.schemas import ChosenTools, UpdateMcpTools
from hublet.repos import service as repos
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.tokens.records import Caller


class SpaceToolNotFound(NotFound):
    """It does not exist, or the caller may not know that it does."""

    def __init__(self, place: int, full_name: str) -> None:
        super().__init__(
            f"spaceTools[{place}]: there is no space {full_name}, or you cannot see it."
        )


async def tools_of(conn: Reader, caller: Caller) -> ChosenTools:
    chosen = await store.list_spaces(conn, user_id=caller.user_id)
    return ChosenTools(
        built_in=tuple(await store.list_built_in(conn, user_id=caller.user_id)),
        spaces=tuple([each for each in chosen if await repos.may(conn, caller, each, Right.see)]),
    )


async def update(conn: Connection, caller: Caller, request: UpdateMcpTools) -> ChosenTools:
    """Set what the request names; what it leaves out stays."""
    # Two requests at once would both put their spaces beside those of the other.
    await conn.lock(f"tools of {caller.user_id}")
    if request.spaceTools is not MISSING:
        spaces = await _find_spaces(conn, caller, request.spaceTools)
        await store.set_spaces(conn, [space.id for space in spaces], user_id=caller.user_id)
    if request.builtInTools is not MISSING:
        await store.set_built_in(conn, request.builtInTools, user_id=caller.user_id)
    return await tools_of(conn, caller)


async def _find_spaces(conn: Reader, caller: Caller, names: Sequence[str]) -> list[Repo]:
    """Return each space once, though two names may mean it: of today, and of before a rename."""
    found: dict[str, Repo] = {}
    for place, full_name in enumerate(names):
        namespace, _, name = full_name.partition("/")
        address = RepoAddress(type=RepoType.space, namespace=namespace, name=name)
        try:
            space = await repos.get(conn, caller, address, Right.see)
        except RepoNotFound:
            raise SpaceToolNotFound(place, full_name) from None
        found[space.id] = space
    return list(found.values())
