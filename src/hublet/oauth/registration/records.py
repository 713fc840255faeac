"""What comes of a registration."""

from dataclasses import field

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An app that has just registered, and its secret, this once."""

    app: App
    auth_method: str
    grant_types: tuple[str, ...]
    secret: str | None = field(default=None, repr=False)
