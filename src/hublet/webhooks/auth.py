"""Authorization of webhook routes: an annotated type for whose webhooks a request is about."""

import re
from typing import Annotated

from fastapi import Depends, Path, Request

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Owner, OwnerType, Role
from hublet.core.database import Reader
from hublet.core.http import Db, Router
from hublet.core.http.routers import mirror_routes
from hublet.tokens.auth import WebhookManager, actor_of
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope
from hublet.webhooks.records import WebhookAccess

OWN_WEBHOOKS = "/api/settings/webhooks"
ORGANIZATION_WEBHOOKS = "/api/organizations/{name}/settings/webhooks"
# Interface 4.1 calls the parameter so.
WebhookId = Annotated[str, Path(alias="webhookId")]


def access_to_own(request: Request, caller: Caller) -> WebhookAccess:
    check_scope(caller, owner_id=caller.user_id)
    owner = Owner(id=caller.user_id, name=caller.user_name, type=OwnerType.user)
    return WebhookAccess(owner=owner, caller=caller, actor=actor_of(request, caller))


def check_scope(caller: Caller, *, owner_id: str) -> None:
    """Refuse a token whose scope covers only other owners."""
    caller.check_reaches(owner_id)
    if not caller.may(Scope.webhooks, on=owner_id):
        raise ScopeNeeded([Scope.webhooks])


async def access_to_organization(
    request: Request, conn: Reader, caller: Caller, name: str
) -> WebhookAccess:
    """Return the access of an administrator to the organization's webhooks; refuse others."""
    organization = await organizations.get_as(conn, name, user_id=caller.user_id, needed=Role.admin)
    check_scope(caller, owner_id=organization.id)
    owner = Owner(id=organization.id, name=organization.name, type=OwnerType.organization)
    return WebhookAccess(owner=owner, caller=caller, actor=actor_of(request, caller))


async def _access_to_own(request: Request, caller: WebhookManager) -> WebhookAccess:
    return access_to_own(request, caller)


async def _access_to_organization(
    request: Request, database: Db, caller: WebhookManager, name: str
) -> WebhookAccess:
    # Not the connection of the route: a request that waits for a second one could wait for ever.
    async with database.read() as conn:
        return await access_to_organization(request, conn, caller, name)


WebhookOwner = Annotated[WebhookAccess, Depends(_access_to_own)]
OwningOrganization = Annotated[WebhookAccess, Depends(_access_to_organization)]


def mirror_for_organizations(own_webhooks: Router) -> Router:
    """Return the same routes for the webhooks of an organization."""
    return mirror_routes(
        own_webhooks,
        tag="webhooks",
        path=(OWN_WEBHOOKS, ORGANIZATION_WEBHOOKS),
        name=("webhook", "organization_webhook"),
        describe=_describe_for_organizations,
        owner=(WebhookOwner, OwningOrganization),
    )


def _describe_for_organizations(text: str) -> str:
    return re.sub(r"\bwebhooks?\b", r"\g<0> of an organization", text, count=1)
