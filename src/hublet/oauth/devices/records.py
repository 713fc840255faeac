"""Records of a device login: the request of an app on a device without a browser."""

from datetime import datetime
from enum import StrEnum

from hublet.core.dataclasses import dataclass
from hublet.tokens.records import Scope


class DeviceState(StrEnum):
    pending = "pending"
    approved = "approved"
    denied = "denied"
    consumed = "consumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    digest: str
    app_id: str
    scopes: frozenset[Scope]
    state: DeviceState
    # Seconds between two polls; grows with each one that comes too early.
    interval: int
    # Address and program of the device, for the person who decides.
    address: str | None = None
    agent: str | None = None
    # Who decided, and when they last signed in.
    user_id: str | None = None
    organization_ids: frozenset[str] = frozenset()
    authenticated_at: datetime | None = None
    created_at: datetime
    expires_at: datetime
    # The access that it gave when it was used.
    access_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedDevice:
    """The two codes of a request, which are not stored: one for the app, one for the person."""

    device_code: str
    # As people read it, `WDJB-MJHT`.
    user_code: str
