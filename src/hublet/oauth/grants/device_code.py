"""Device code grant (RFC 8628, 3.4): an app polls until a person has decided."""

from functools import partial
from typing import NoReturn

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.oauth import devices
from hublet.oauth.access import service as accesses
from hublet.oauth.access.issuance import issue_tokens
from hublet.oauth.access.records import EndReason, Origin
from hublet.oauth.errors import OAuthError, invalid_grant
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest, check_target
from hublet.oauth.records import Device, DeviceState, OAuthApp, Permission, Via


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    check_target(request, base_url=context.database.hub.settings.base_url)
    value = request.get("device_code")
    app = await context.clients.authenticate(request.credentials)
    async with context.database.read() as conn:
        device = await _get_device(conn, app, value)
    if device.state is DeviceState.consumed:
        return await context.write(partial(_refuse_reuse, device))
    if device.expires_at <= now():
        raise OAuthError("expired_token", "The device code has expired; ask for a new one.")
    if device.state is DeviceState.denied:
        raise OAuthError("access_denied", "The person refused.")
    if device.state is DeviceState.pending:
        await _refuse_pending(context, device)
    context.polls.forget(device)
    return await context.write(partial(_issue, app, device))


async def _get_device(conn: Reader, app: OAuthApp, value: str) -> Device:
    device = await devices.find(conn, value)
    if device is None or device.app_id != app.id:
        raise _invalid_device_code()
    return device


async def _refuse_pending(context: GrantContext, device: Device) -> NoReturn:
    """Answer that the person has not decided; only a poll that came too early costs a write."""
    if context.polls.is_too_early(device):
        await context.write(partial(_slow_down, device))
    raise OAuthError("authorization_pending", "The person has not decided yet.")


async def _slow_down(device: Device, conn: Connection) -> OAuthError:
    # RFC 8628, 3.5: five seconds more, for this code and for good.
    interval = await devices.slow_down(conn, device)
    return OAuthError("slow_down", f"Poll every {interval} seconds.", interval=interval)


async def _issue(app: OAuthApp, device: Device, conn: Connection) -> GrantResult | OAuthError:
    permission = Permission(
        user_id=device.user_id or "",
        app_id=app.id,
        scopes=device.scopes,
        organization_ids=device.organization_ids,
    )
    holder = await accesses.get_holder(conn, permission)
    access_id = new_object_id()
    if not await devices.consume(conn, device, access_id=access_id):
        return await _refuse_reuse(device, conn)
    origin = Origin(
        authenticated_at=device.authenticated_at, address=device.address, agent=device.agent
    )
    access = await accesses.begin(conn, permission, Via.device, origin=origin, access_id=access_id)
    return GrantResult(
        app=app,
        user_id=holder.user_id,
        issued=await issue_tokens(conn, app, access, holder=holder, scopes=device.scopes),
        organization_ids=tuple(holder.organizations),
        authenticated_at=device.authenticated_at,
    )


async def _refuse_reuse(device: Device, conn: Connection) -> OAuthError:
    """End the access of a used code: the second client may be a thief."""
    used = await devices.reload(conn, device)
    if used.access_id is not None:
        await accesses.end(conn, [used.access_id], EndReason.reuse)
    return _invalid_device_code()


def _invalid_device_code() -> OAuthError:
    return invalid_grant("The device code is unknown or was used before.")
