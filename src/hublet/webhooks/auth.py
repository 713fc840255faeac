"""Owner of the webhooks that a request is about, as a type that a route names."""

import re
from typing import Annotated

from fastapi import Depends, Request

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.http import Db, Router
from hublet.core.http.routers import mirror_routes
from hublet.tokens.auth import WebhookManager, actor_of
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope
from hublet.webhooks.records import Owner

OWN_WEBHOOKS = "/api/settings/webhooks"
ORGANIZATION_WEBHOOKS = "/api/organizations/{name}/settings/webhooks"


def owner_of_caller(request: Request, caller: Caller) -> Owner:
    check_scope(caller, owner_id=caller.user_id)
    actor = actor_of(request, caller)
    return Owner(id=caller.user_id, name=caller.user_name, caller=caller, actor=actor)


def check_scope(caller: Caller, *, owner_id: str) -> None:
    """Refuse a token whose scope holds somewhere else only."""
    if not caller.may(Scope.webhooks, on=owner_id):
        raise ScopeNeeded([Scope.webhooks])


async def _caller_as_owner(request: Request, caller: WebhookManager) -> Owner:
    return owner_of_caller(request, caller)


async def _organization_as_owner(
    request: Request, database: Db, caller: WebhookManager, name: str
) -> Owner:
    # Not the connection of the route: a request that waits for a second one could wait for ever.
    async with database.read() as conn:
        found = await organizations.get_as(conn, name, user_id=caller.user_id, needed=Role.admin)
    check_scope(caller, owner_id=found.id)
    return Owner(
        id=found.id,
        name=found.name,
        is_organization=True,
        caller=caller,
        actor=actor_of(request, caller),
    )


WebhookOwner = Annotated[Owner, Depends(_caller_as_owner)]
OwningOrganization = Annotated[Owner, Depends(_organization_as_owner)]


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
