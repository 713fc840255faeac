"""Records of the delivery engine: targets, lanes as stored, endings of deliveries."""

from dataclasses import field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from hublet.core.dataclasses import dataclass
from hublet.tokens.delegations import Delegation
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.records import DeliveryState, WebhookSecrets, WebhookState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTarget:
    """A webhook as its deliveries need it; exactly one of `url`, `job`, `job_source_id` is set."""

    webhook_id: str
    owner_id: str
    # In whose name a job is started.
    delegation: Delegation
    # Of whose private repositories it may hear; None: all that its owner may see.
    private_owners: frozenset[str] | None = None
    state: WebhookState
    updated_at: int
    url: str | None = field(default=None, repr=False)
    # The URL without its secret parts, and the host that counts for the limit per host.
    display_url: str | None = None
    host: str | None = None
    job: dict[str, Any] | None = field(default=None, repr=False)
    job_source_id: str | None = None
    # None when they cannot be unsealed.
    secrets: WebhookSecrets | None = None
    # The keys that sign: of the current secret, and of the one before until it expires.
    key: bytes | None = field(default=None, repr=False)
    old_key: bytes | None = field(default=None, repr=False)
    old_key_until: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLane:
    """A webhook's lane as the database stores it."""

    webhook_id: str
    # Host and port of its URL, where the query reads them; None for one that starts jobs.
    host: str | None = None
    # When to claim what is due; None: nothing waits.
    next_due_at: int | None = None
    # Triggers of the current day.
    day_count: int = 0
    health: Health

    @property
    def is_degraded(self) -> bool:
        return self.health.degraded_since is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The state in which an outcome leaves its delivery; equal ones are written together."""

    state: DeliveryState
    reason: str | None = None
    status: int | None = None
    # 1 when an attempt was made, else 0.
    tried: int = 0


@lru_cache(maxsize=4096)
def split_url(url: str | None) -> tuple[str | None, str | None]:
    """Return a URL without query, fragment and user, which may be secret, and its host and port."""
    if url is None:
        return None, None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}", host.lower()
