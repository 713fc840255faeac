"""What the administrators of an organization see and decide about apps that are bound to it."""

from pydantic import MISSING

from hublet.accounts.audit import service as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Organization, Role
from hublet.core.database import Connection, Reader
from hublet.oauth.apps import store as apps_store
from hublet.oauth.apps.organizations import store
from hublet.oauth.apps.organizations.schemas import (
    DEFAULT_EXCHANGE_SECONDS,
    OAuthSettings,
    UpdateOAuthSettings,
)
from hublet.oauth.apps.records import ManagedApp


async def list_apps(conn: Reader, name: str, *, user_id: str) -> list[ManagedApp]:
    organization = await _administered(conn, name, user_id=user_id)
    return await apps_store.list_of_organization(conn, organization.id)


async def exchange_seconds_of(conn: Reader, organization_id: str) -> int:
    """Return how long a token lives that an app of this organization gets by exchange."""
    found = await store.find_exchange_seconds(conn, organization_id)
    return DEFAULT_EXCHANGE_SECONDS if found is None else found


async def get_settings(conn: Reader, name: str, *, user_id: str) -> OAuthSettings:
    organization = await _administered(conn, name, user_id=user_id)
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))


async def update_settings(
    conn: Connection, actor: Actor, name: str, request: UpdateOAuthSettings
) -> OAuthSettings:
    """Change what the request names; tokens that were issued before keep their time."""
    organization = await _administered(conn, name, user_id=actor.id or "")
    seconds = request.exchangeSeconds
    if seconds is not MISSING:
        await store.set_exchange_seconds(conn, organization.id, seconds)
        await audit.record(
            conn, organization.id, actor, "oauth-settings.update", target=organization.name,
            details={"exchange_seconds": seconds},
        )  # fmt: skip
    return OAuthSettings(exchangeSeconds=await exchange_seconds_of(conn, organization.id))


async def _administered(conn: Reader, name: str, *, user_id: str) -> Organization:
    return await organizations.get_as(conn, name, user_id=user_id, needed=Role.admin)
