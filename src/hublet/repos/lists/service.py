"""Rules of lists of repositories: nobody sees in a list what they cannot see by its name."""

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.database import Reader
from hublet.repos import access
from hublet.repos.lists import store
from hublet.repos.lists.positions import read_own_position, read_position
from hublet.repos.lists.records import Order, RepoFilter
from hublet.repos.records import Reach, Repo
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope


async def list_repos(
    conn: Reader,
    caller: Caller | None,
    wanted: RepoFilter,
    *,
    order: Order,
    after: str = "",
    limit: int = 100,
) -> list[Repo]:
    """Return repositories of a type that the caller may see; `after` is from `write_position`."""
    reach = await _reach(conn, caller)
    position = read_position(after)
    return await store.list_of_type(conn, wanted, reach, order=order, after=position, limit=limit)


async def _reach(conn: Reader, caller: Caller | None) -> Reach | None:
    if caller is None:
        return None
    return access.reach_of(caller, await store.roles_of_user(conn, caller.user_id))


async def get_owner_id(conn: Reader, caller: Caller, organization: str | None) -> str:
    """Return whose repositories are asked for: the caller's own, or those of an organization."""
    owner_id = caller.user_id
    if organization is not None:
        found = await organizations.get_as(
            conn, organization, user_id=caller.user_id, needed=Role.read
        )
        owner_id = found.id
    if not caller.may(Scope.read_repos, on=owner_id):
        raise ScopeNeeded([Scope.read_repos])
    return owner_id


async def list_of_owner(
    conn: Reader, caller: Caller, owner_id: str, *, after: str, limit: int
) -> list[Repo]:
    """Return the repositories of an owner whom `get_owner_id` gave, of all types."""
    reach = await _reach(conn, caller)
    if reach is None:
        return []
    position = read_own_position(after)
    return await store.list_of_owner(conn, owner_id, reach, after=position, limit=limit)
