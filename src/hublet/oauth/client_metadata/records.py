"""Records of client metadata: a document as it was fetched and as it is cached, and a
registration.
"""

from dataclasses import field
from datetime import datetime, timedelta

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import OAuthApp

# How long after its time a copy serves token requests while the site is out of reach.
STALE_LIFE = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument:
    """What came from the site."""

    body: bytes = field(repr=False)
    fetched_at: datetime
    fresh_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedDocument:
    app: OAuthApp
    fresh_until: datetime
    # Where the document said that its logo is.
    logo_uri: str | None

    def serves(self, now: datetime, *, may_be_stale: bool) -> bool:
        late = STALE_LIFE if may_be_stale else timedelta()
        return now < self.fresh_until + late


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An app that has just registered, and its secret, this once."""

    app: OAuthApp
    auth_method: str
    grant_types: tuple[str, ...]
    secret: str | None = field(default=None, repr=False)
