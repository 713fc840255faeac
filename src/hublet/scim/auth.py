"""Directory of a request, as a type that a route names."""

from typing import Annotated

from fastapi import Depends, Request

from hublet.accounts.errors import PlanNeeded
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.http import Db, Router
from hublet.core.http.routers import mirror_routes
from hublet.scim.records import Directory
from hublet.tokens.auth import AccountOwner, actor_of

INVITED = "/api/organizations/{name}/scim/v2"
MANAGED = "/api/organizations/{name}/scim-provisioning/v2"

_ABOUT_MANAGED_USERS = """

    Here the users are managed: their accounts are created with them, belong to the organization
    and end with `active: false`.
    """


async def _open(
    request: Request, database: Db, caller: AccountOwner, name: str, *, managed: bool
) -> Directory:
    """Interface 5.1: an owner, a token that may write to the organization, and the plan."""
    async with database.read() as conn:
        found = await organizations.get_as(conn, name, user_id=caller.user_id, needed=Role.admin)
    if not found.plan.has_scim:
        raise PlanNeeded("SCIM users and groups", OrganizationPlan.enterprise_plus, found.name)
    return Directory(organization=found, managed=managed, actor=actor_of(request, caller))


async def open_invited(
    request: Request, database: Db, caller: AccountOwner, name: str
) -> Directory:
    return await _open(request, database, caller, name, managed=False)


async def open_managed(
    request: Request, database: Db, caller: AccountOwner, name: str
) -> Directory:
    return await _open(request, database, caller, name, managed=True)


InvitedUsers = Annotated[Directory, Depends(open_invited)]
ManagedUsers = Annotated[Directory, Depends(open_managed)]


def for_managed_users(of_invited_users: Router) -> Router:
    """Return the same routes for managed users."""
    return mirror_routes(
        of_invited_users,
        tag="scim",
        path=(INVITED, MANAGED),
        name=("scim", "managed_scim"),
        describe=lambda text: f"{text}{_ABOUT_MANAGED_USERS}",
        owner=(InvitedUsers, ManagedUsers),
    )
