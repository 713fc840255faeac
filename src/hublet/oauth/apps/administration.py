"""What the operator of the hub decides about apps."""

from dataclasses import replace

from hublet.accounts.errors import PlanNeeded
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Plan
from hublet.core.database import Connection
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import service, store
from hublet.oauth.apps.errors import NotBound, PartOfTheHub
from hublet.oauth.apps.records import ManagedApp
from hublet.oauth.records import AppKind, Via


async def set_token_exchange(
    conn: Connection, actor: Actor, client_id: str, *, allowed: bool
) -> ManagedApp:
    """Let an app exchange the addresses of members for tokens, or no longer."""
    found = await _hold(conn, client_id)
    if allowed:
        await _check_exchange(conn, found)
    app = replace(found.app, token_exchange=allowed)
    await store.update(conn, app)
    if not allowed:
        # What it got by exchange ends with the privilege.
        await accesses.end_of_app(conn, app.id, EndReason.lapsed, vias=[Via.exchange])
    action = "oauth-app.allow-exchange" if allowed else "oauth-app.forbid-exchange"
    await service.record(conn, actor, app, action)
    return replace(found, app=app)


async def _check_exchange(conn: Connection, found: ManagedApp) -> None:
    if found.organization is None:
        raise NotBound(found.app.client_id)
    organization = await organizations.get(conn, found.organization)
    # Interface 5.4: an Enterprise feature.
    if organization.plan not in {Plan.enterprise, Plan.enterprise_plus}:
        raise PlanNeeded("Token exchanges", Plan.enterprise, organization.name)


async def delete(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    """Forget any app but the hub's own, and end everything that people allowed it."""
    found = await _hold(conn, client_id)
    if found.app.kind is AppKind.first_party:
        raise PartOfTheHub(client_id)
    await service.remove(conn, [found.app.id])
    await service.record(conn, actor, found.app, "oauth-app.delete")
    return found


async def _hold(conn: Connection, client_id: str) -> ManagedApp:
    await conn.lock(f"app {client_id}")
    return await service.get_any(conn, client_id)
