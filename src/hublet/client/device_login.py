"""Device authorization grant (RFC 8628) for commands, and refresh of its tokens."""

from dataclasses import dataclass, field
from typing import Any

from hublet.client.errors import LoginFailed, NotReachable, Refused
from hublet.client.events import FIRST_SERVER_ERROR, pause
from hublet.client.hub import Hub
from hublet.core.clock import micros, monotonic

# The app of the public command line, which every hub knows without any set-up.
CLIENT_ID = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"

_DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
# RFC 8628, 3.2 and 3.5: unless the hub says something else.
_INTERVAL_SECONDS = 5
_LIFE_SECONDS = 900
_SLOWER_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    # Seconds since 1970.
    expires_at: int | None = None

    @classmethod
    def of(cls, response: dict[str, Any]) -> "Tokens":
        seconds = response.get("expires_in")
        return cls(
            access_token=response["access_token"],
            refresh_token=response.get("refresh_token"),
            expires_at=None if seconds is None else micros() // 1_000_000 + int(seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLogin:
    """A started login: what the person is shown, and what the command polls with."""

    user_code: str
    # With the code in it, if the hub offers that.
    address: str
    device_code: str = field(repr=False)
    interval: float = _INTERVAL_SECONDS
    life: float = _LIFE_SECONDS


def start(hub: Hub) -> DeviceLogin:
    response = hub.post_form("/oauth/device", {"client_id": CLIENT_ID})
    return DeviceLogin(
        user_code=response["user_code"],
        address=response.get("verification_uri_complete") or response["verification_uri"],
        device_code=response["device_code"],
        interval=response.get("interval", _INTERVAL_SECONDS),
        life=response.get("expires_in", _LIFE_SECONDS),
    )


def wait(hub: Hub, login: DeviceLogin) -> Tokens:
    """Poll until the person has decided; network failures meanwhile are ignored."""
    deadline, interval = monotonic() + login.life, login.interval
    form = {"grant_type": _DEVICE_CODE, "device_code": login.device_code, "client_id": CLIENT_ID}
    while monotonic() < deadline:
        pause(interval)
        try:
            return Tokens.of(hub.post_form("/oauth/token", form))
        except NotReachable:
            continue
        except Refused as error:
            interval += _extra_wait(error)
    raise LoginFailed("The code has expired: nobody allowed this login in time. Log in again.")


def _extra_wait(error: Refused) -> int:
    """Return by how many seconds to slow down; raise if the login has failed."""
    if error.code == "slow_down":
        return _SLOWER_SECONDS
    if error.code == "authorization_pending" or error.status >= FIRST_SERVER_ERROR:
        return 0
    if error.code == "access_denied":
        raise LoginFailed("The login was refused in the browser.")
    if error.code == "expired_token":
        raise LoginFailed("The code has expired: nobody allowed this login in time. Log in again.")
    raise error


def refresh(hub: Hub, refresh_token: str) -> Tokens:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": CLIENT_ID}
    return Tokens.of(hub.post_form("/oauth/token", form))


def revoke(hub: Hub, token: str) -> None:
    """End a login: with a refresh token, everything that was issued with it."""
    hub.post_form("/oauth/revoke", {"token": token, "client_id": CLIENT_ID})
