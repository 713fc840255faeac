"""The start of a device login (RFC 8628, 3.1)."""

from functools import partial
from typing import Any

from hublet.core.database import Connection
from hublet.core.limits import Policy, refuse_when_spent
from hublet.oauth.apps.errors import UnknownApp
from hublet.oauth.apps.service import resolve_app
from hublet.oauth.clients import authenticated
from hublet.oauth.devices import service as devices
from hublet.oauth.devices.records import StartedDevice
from hublet.oauth.errors import InvalidClient
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import TokenRequest
from hublet.oauth.scopes import scopes_asked_by

PATH = "/device"
STARTS = Policy(name="device", quota=120, window_seconds=900)


async def start(desk: Desk, request: TokenRequest) -> dict[str, Any]:
    refuse_when_spent(desk.limiter.count(STARTS, request.address))
    if request.presented.client_id is not None:
        await _fetch(desk, request.presented.client_id)
    started = await desk.write(partial(_start, request))
    address = desk.database.hub.settings.base_url + PATH
    return {
        "device_code": started.device_code,
        "user_code": started.user_code,
        "verification_uri": address,
        "verification_uri_complete": f"{address}?user_code={started.user_code}",
        "expires_in": int(devices.LIFE.total_seconds()),
        "interval": devices.INTERVAL_SECONDS,
    }


async def _fetch(desk: Desk, client_id: str) -> None:
    """Make the app known, which may be a document on the web, before a transaction is open."""
    try:
        await resolve_app(desk.database, client_id)
    except UnknownApp:
        raise InvalidClient from None


async def _start(request: TokenRequest, conn: Connection) -> StartedDevice:
    app = await authenticated(conn, request.presented)
    scopes = scopes_asked_by(app, request.find("scope"))
    return await devices.start(conn, app, scopes, address=request.address, agent=request.agent)
