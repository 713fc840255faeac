"""HTTP routes for credentials at other registries: one's own, an organization's, the hub's."""

from typing import Annotated

from fastapi import Path

from hublet.accounts.organizations import service as organizations
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.registry import credentials
from hublet.registry.schemas import RegistryCredentialCard, SetRegistryCredential
from hublet.tokens.auth import AccountOwner, Administrator
from hublet.tokens.records import Caller

_Host = Annotated[
    str, Path(max_length=300, description="As in names of images: `docker.io`, `host:5000`.")
]


own_router = Router(prefix="/api/settings/registry-credentials", tags=["containers"])


@own_router.get("")
async def list_registry_credentials(
    conn: ReadConn, caller: AccountOwner
) -> list[RegistryCredentialCard]:
    """List the registries at which jobs of the caller log in to pull images."""
    return await _list(conn, caller.user_id)


@own_router.put("/{host}")
async def set_registry_credential(
    conn: Conn, caller: AccountOwner, host: _Host, body: SetRegistryCredential
) -> RegistryCredentialCard:
    """Store how jobs of the caller log in to a registry; what was stored before is replaced."""
    stored = await credentials.set_credential(
        conn, caller.user_id, host, username=body.username, secret=body.secret
    )
    return RegistryCredentialCard.of(stored)


@own_router.delete("/{host}")
async def remove_registry_credential(conn: Conn, caller: AccountOwner, host: _Host) -> Done:
    """Remove the caller's credentials for a registry."""
    await credentials.remove_credential(conn, caller.user_id, host)
    return Done()


organization_router = Router(
    prefix="/api/organizations/{name}/registry-credentials", tags=["containers"]
)


@organization_router.get("")
async def list_organization_registry_credentials(
    conn: ReadConn, caller: AccountOwner, name: str
) -> list[RegistryCredentialCard]:
    """List the registries at which jobs of an organization log in; for its administrators."""
    return await _list(conn, await _administered(conn, caller, name))


@organization_router.put("/{host}")
async def set_organization_registry_credential(
    conn: Conn, caller: AccountOwner, name: str, host: _Host, body: SetRegistryCredential
) -> RegistryCredentialCard:
    """Store how jobs of an organization log in to a registry; for its administrators."""
    owner_id = await _administered(conn, caller, name)
    stored = await credentials.set_credential(
        conn, owner_id, host, username=body.username, secret=body.secret
    )
    return RegistryCredentialCard.of(stored)


@organization_router.delete("/{host}")
async def remove_organization_registry_credential(
    conn: Conn, caller: AccountOwner, name: str, host: _Host
) -> Done:
    """Remove the credentials of an organization for a registry; for its administrators."""
    await credentials.remove_credential(conn, await _administered(conn, caller, name), host)
    return Done()


hub_router = Router(prefix="/api/admin/registry-credentials", tags=["administration"])


@hub_router.get("")
async def list_hub_registry_credentials(
    conn: ReadConn, _caller: Administrator
) -> list[RegistryCredentialCard]:
    """List the registries at which every job of the hub logs in whose owner has no credentials."""
    return await _list(conn, credentials.HUB)


@hub_router.put("/{host}")
async def set_hub_registry_credential(
    conn: Conn, _caller: Administrator, host: _Host, body: SetRegistryCredential
) -> RegistryCredentialCard:
    """Store how jobs log in to a registry whose owner has no credentials there.

    Whoever may run jobs can run every image that these credentials can pull.
    """
    stored = await credentials.set_credential(
        conn, credentials.HUB, host, username=body.username, secret=body.secret
    )
    return RegistryCredentialCard.of(stored)


@hub_router.delete("/{host}")
async def remove_hub_registry_credential(conn: Conn, _caller: Administrator, host: _Host) -> Done:
    """Remove the hub's credentials for a registry."""
    await credentials.remove_credential(conn, credentials.HUB, host)
    return Done()


async def _list(conn: Reader, owner_id: str) -> list[RegistryCredentialCard]:
    stored = await credentials.list_credentials(conn, owner_id)
    return [RegistryCredentialCard.of(each) for each in stored]


async def _administered(conn: Reader, caller: Caller, name: str) -> str:
    return (await organizations.get_administered(conn, name, user_id=caller.user_id)).id


ROUTERS: tuple[Router, ...] = (own_router, organization_router, hub_router)
