"""Administration of apps by the hub's operator and by administrators of organizations."""

from dataclasses import replace

from pydantic import MISSING

from hublet.accounts.errors import PlanNeeded
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, OrganizationPlan, Role
from hublet.core.database import Connection, Reader
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import service, store
from hublet.oauth.apps.records import ManagedApp
from hublet.oauth.apps.schemas import OAuthSettings, UpdateOAuthSettings
from hublet.oauth.errors import AppNotBound, FirstPartyAppProtected
from hublet.oauth.records import DEFAULT_EXCHANGE_SECONDS, AppKind, Via


async def set_token_exchange(
    conn: Connection, actor: Actor, client_id: str, *, allowed: bool
) -> ManagedApp:
    """Allow or forbid that an app exchanges the addresses of members for tokens."""
    managed = await _lock_any_app(conn, client_id)
    if allowed:
        await _check_may_exchange(conn, managed)
    app = replace(managed.app, token_exchange=allowed)
    await store.update(conn, app)
    if not allowed:
        # Accesses from token exchange end with the privilege.
        await accesses.end_of_app(conn, app.id, EndReason.lapsed, vias=[Via.exchange])
    action = "oauth-app.allow-exchange" if allowed else "oauth-app.forbid-exchange"
    await service.write_audit(conn, actor, app, action)
    return replace(managed, app=app)


async def _check_may_exchange(conn: Connection, managed: ManagedApp) -> None:
    if managed.organization is None:
        raise AppNotBound(managed.app.client_id)
    organization = await organizations.get(conn, managed.organization)
    # Interface 5.4: an Enterprise feature.
    if not organization.plan.has_service_accounts:
        raise PlanNeeded("Token exchanges", OrganizationPlan.enterprise, organization.name)


async def delete_app(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    """Delete any app but the hub's own, and end every access that people gave it."""
    managed = await _lock_any_app(conn, client_id)
    if managed.app.kind is AppKind.first_party:
        raise FirstPartyAppProtected(client_id)
    await service.remove(conn, [managed.app.id])
    await service.write_audit(conn, actor, managed.app, "oauth-app.delete")
    return managed


async def _lock_any_app(conn: Connection, client_id: str) -> ManagedApp:
    await conn.lock(f"app {client_id}")
    return await service.get_any(conn, client_id)


async def list_organization_apps(conn: Reader, name: str, *, user_id: str) -> list[ManagedApp]:
    organization = await organizations.get_as(conn, name, user_id=user_id, needed=Role.admin)
    return await store.list_of_organization(conn, organization.id)


async def exchange_seconds_of(conn: Reader, organization_id: str) -> int:
    """Return how long a token lives that an app of this organization gets by exchange."""
    seconds = await store.find_exchange_seconds(conn, organization_id)
    return DEFAULT_EXCHANGE_SECONDS if seconds is None else seconds


async def get_settings(conn: Reader, name: str, *, user_id: str) -> OAuthSettings:
    organization = await organizations.get_as(conn, name, user_id=user_id, needed=Role.admin)
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))


async def update_settings(
    conn: Connection, actor: Actor, name: str, request: UpdateOAuthSettings
) -> OAuthSettings:
    """Change what the request names; tokens that were issued before live as long as they did."""
    organization = await organizations.get_as(conn, name, user_id=actor.id or "", needed=Role.admin)
    seconds = request.exchangeSeconds
    if seconds is not MISSING:
        await store.set_exchange_seconds(conn, organization.id, seconds)
        await audit.record(
            conn, organization.id, actor, "oauth-settings.update", target=organization.name,
            details={"exchange_seconds": seconds},
        )  # fmt: skip
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))
