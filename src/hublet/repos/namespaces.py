"""Under which names a caller may put a repository."""

from hublet.accounts.errors import OrganizationNotFound
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.repos.errors import CannotCreateThere
from hublet.tokens.records import Caller, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A user or an organization, as the owner of repositories."""

    id: str
    name: str
    # Either "user" or "org".
    type: str


async def get_namespace(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None = None
) -> Namespace:
    """Return the owner of that name when the caller may create repositories there."""
    if name_key(name) == name_key(caller.user_name):
        if resource_group_id is not None:
            raise CannotCreateThere(name, "only organizations have resource groups.")
        namespace = Namespace(id=caller.user_id, name=caller.user_name, type="user")
    else:
        namespace = await _organization(conn, caller, name, resource_group_id=resource_group_id)
    if not any(
        caller.may(scope, on=namespace.id) for scope in (Scope.manage_repos, Scope.contribute_repos)
    ):
        raise CannotCreateThere(name, f"the token lacks the scope {Scope.manage_repos}.")
    return namespace


async def _organization(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None
) -> Namespace:
    # In a resource group the role there decides, as long as one is a member at all.
    needed = Role.contributor if resource_group_id is None else Role.read
    try:
        organization = await organizations.get_as(conn, name, user_id=caller.user_id, needed=needed)
    except OrganizationNotFound:
        raise CannotCreateThere(name, "it is neither you nor one of your organizations.") from None
    if resource_group_id is not None:
        role = await resource_groups.role_in(
            conn, organization, resource_group_id, user_id=caller.user_id
        )
        if role is None or not role.covers(Role.contributor):
            raise CannotCreateThere(name, "you cannot create repositories in that resource group.")
    return Namespace(id=organization.id, name=organization.name, type="org")
