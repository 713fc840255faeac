"""Administration of apps by the hub's operator and by administrators of organizations."""

from dataclasses import replace

from pydantic import MISSING

from hublet.accounts.errors import PlanNeeded
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Organization, OrganizationPlan, Role
from hublet.core.database import Connection, Reader
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import service, store
from hublet.oauth.apps.records import ManagedApp
from hublet.oauth.apps.schemas import DEFAULT_EXCHANGE_SECONDS, OAuthSettings, UpdateOAuthSettings
from hublet.oauth.errors import AppNotBound, FirstPartyAppProtected
from hublet.oauth.records import AppKind, Via


async def set_token_exchange(
    conn: Connection, actor: Actor, client_id: str, *, allowed: bool
) -> ManagedApp:
    """Let an app exchange the addresses of members for tokens, or no longer."""
    found = await _lock_any_app(conn, client_id)
    if allowed:
        await _check_may_exchange(conn, found)
    app = replace(found.app, token_exchange=allowed)
    await store.update(conn, app)
    if not allowed:
        # What it got by exchange ends with the privilege.
        await accesses.end_of_app(conn, app.id, EndReason.lapsed, vias=[Via.exchange])
    action = "oauth-app.allow-exchange" if allowed else "oauth-app.forbid-exchange"
    await service.write_audit(conn, actor, app, action)
    return replace(found, app=app)


async def _check_may_exchange(conn: Connection, found: ManagedApp) -> None:
    if found.organization is None:
        raise AppNotBound(found.app.client_id)
    organization = await organizations.get(conn, found.organization)
    # Interface 5.4: an Enterprise feature.
    if organization.plan not in {OrganizationPlan.enterprise, OrganizationPlan.enterprise_plus}:
        raise PlanNeeded("Token exchanges", OrganizationPlan.enterprise, organization.name)


async def delete_app(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    """Forget any app but the hub's own, and end everything that people allowed it."""
    found = await _lock_any_app(conn, client_id)
    if found.app.kind is AppKind.first_party:
        raise FirstPartyAppProtected(client_id)
    await service.remove(conn, [found.app.id])
    await service.write_audit(conn, actor, found.app, "oauth-app.delete")
    return found


async def _lock_any_app(conn: Connection, client_id: str) -> ManagedApp:
    await conn.lock(f"app {client_id}")
    return await service.get_any(conn, client_id)


async def list_organization_apps(conn: Reader, name: str, *, user_id: str) -> list[ManagedApp]:
    organization = await _get_administered(conn, name, user_id=user_id)
    return await store.list_of_organization(conn, organization.id)


async def exchange_seconds_of(conn: Reader, organization_id: str) -> int:
    """Return how long a token lives that an app of this organization gets by exchange."""
    found = await store.find_exchange_seconds(conn, organization_id)
    return DEFAULT_EXCHANGE_SECONDS if found is None else found


async def get_settings(conn: Reader, name: str, *, user_id: str) -> OAuthSettings:
    organization = await _get_administered(conn, name, user_id=user_id)
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))


async def update_settings(
    conn: Connection, actor: Actor, name: str, request: UpdateOAuthSettings
) -> OAuthSettings:
    """Change what the request names; tokens that were issued before keep their time."""
    organization = await _get_administered(conn, name, user_id=actor.id or "")
    seconds = request.exchangeSeconds
    if seconds is not MISSING:
        await store.set_exchange_seconds(conn, organization.id, seconds)
        await audit.record(
            conn, organization.id, actor, "oauth-settings.update", target=organization.name,
            details={"exchange_seconds": seconds},
        )  # fmt: skip
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))


async def _get_administered(conn: Reader, name: str, *, user_id: str) -> Organization:
    return await organizations.get_as(conn, name, user_id=user_id, needed=Role.admin)
