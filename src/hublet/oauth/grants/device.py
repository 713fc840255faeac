"""Device code (RFC 8628, 3.4): an app polls until a person has decided."""

from functools import partial
from typing import NoReturn

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.oauth.access import service as accesses
from hublet.oauth.access.issuing import issue
from hublet.oauth.access.records import EndReason, Origin
from hublet.oauth.clients import authenticated
from hublet.oauth.devices import service as devices
from hublet.oauth.devices.records import Device, DeviceState
from hublet.oauth.errors import OAuthError, invalid_grant
from hublet.oauth.grants import holders
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import Answer, TokenRequest, check_target
from hublet.oauth.records import App, Permission, Via


async def redeem(desk: Desk, request: TokenRequest) -> Answer:
    check_target(request, base_url=desk.database.hub.settings.base_url)
    value = request.get("device_code")
    async with desk.database.read() as conn:
        app = await authenticated(conn, request.presented)
        device = await _device_of(conn, app, value)
    if device.state is DeviceState.consumed:
        return await desk.write(partial(_refuse_reuse, device))
    if device.expires_at <= now():
        raise OAuthError("expired_token", "The device code has expired; ask for a new one.")
    if device.state is DeviceState.denied:
        raise OAuthError("access_denied", "The person refused.")
    if device.state is DeviceState.pending:
        await _wait(desk, device)
    desk.polls.forget(device)
    return await desk.write(partial(_answer, app, device))


async def _device_of(conn: Reader, app: App, value: str) -> Device:
    device = await devices.find(conn, value)
    if device is None or device.app_id != app.id:
        raise _not_valid()
    return device


async def _wait(desk: Desk, device: Device) -> NoReturn:
    """Tell the app to poll on; only who is too fast costs a write."""
    if desk.polls.is_too_early(device):
        await desk.write(partial(_slow_down, device))
    raise OAuthError("authorization_pending", "The person has not decided yet.")


async def _slow_down(device: Device, conn: Connection) -> OAuthError:
    # RFC 8628, 3.5: five seconds more, for this code and for good.
    interval = await devices.slow_down(conn, device)
    return OAuthError("slow_down", f"Poll every {interval} seconds.", interval=interval)


async def _answer(app: App, device: Device, conn: Connection) -> Answer | OAuthError:
    permission = Permission(
        user_id=device.user_id or "",
        app_id=app.id,
        scopes=device.scopes,
        organization_ids=device.organization_ids,
    )
    holder = await holders.get(conn, permission)
    access_id = new_object_id()
    if not await devices.consume(conn, device, access_id=access_id):
        return await _refuse_reuse(device, conn)
    origin = Origin(
        authenticated_at=device.authenticated_at, address=device.address, agent=device.agent
    )
    access = await accesses.begin(conn, permission, Via.device, origin=origin, access_id=access_id)
    return Answer(
        app=app,
        user_id=holder.user_id,
        issued=await issue(conn, app, access, holder=holder, scopes=device.scopes),
        organization_ids=tuple(holder.organizations),
        authenticated_at=device.authenticated_at,
    )


async def _refuse_reuse(device: Device, conn: Connection) -> OAuthError:
    """Who comes with a used code may have stolen it, so all it gave ends."""
    used = await devices.find_again(conn, device)
    if used.access_id is not None:
        await accesses.end(conn, [used.access_id], EndReason.reuse)
    return _not_valid()


def _not_valid() -> OAuthError:
    return invalid_grant("The device code is unknown or was used before.")
