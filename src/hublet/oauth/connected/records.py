"""An access as the person sees it who gave it."""

from collections.abc import Mapping

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedApp:
    id: str
    client_id: str
    name: str
    has_logo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedAccess:
    access: Access
    app: ConnectedApp
    # Names by id, of those that still exist.
    organizations: Mapping[str, str]
