"""A document as the hub keeps it."""

from dataclasses import field
from datetime import datetime, timedelta

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import App

# How long after its time a copy serves token requests while the site is out of reach.
STALE_LIFE = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came from the site."""

    body: bytes = field(repr=False)
    fetched_at: datetime
    fresh_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    app: App
    fresh_until: datetime
    # Where the document said that its logo is.
    logo_uri: str | None

    def serves(self, now: datetime, *, may_be_stale: bool) -> bool:
        late = STALE_LIFE if may_be_stale else timedelta()
        return now < self.fresh_until + late
