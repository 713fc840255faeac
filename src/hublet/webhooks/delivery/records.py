"""Records of the delivery engine: where deliveries go, and how their lanes stand."""

from dataclasses import field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from hublet.core.dataclasses import dataclass
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.records import WebhookSecrets, WebhookState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTarget:
    """A webhook as its deliveries need it; exactly one of `url`, `job`, `job_source_id` is set."""

    webhook_id: str
    owner_id: str
    creator_id: str
    state: WebhookState
    updated_at: int
    url: str | None = field(default=None, repr=False)
    # The URL without what may be secret in it, and its part that counts for the limit per host.
    shown: str | None = None
    host: str | None = None
    job: dict[str, Any] | None = field(default=None, repr=False)
    job_source_id: str | None = None
    # None when their seals cannot be opened.
    secrets: WebhookSecrets | None = None
    # What signs: of the current secret, and of the one before while it still does.
    key: bytes | None = field(default=None, repr=False)
    old_key: bytes | None = field(default=None, repr=False)
    old_key_until: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLane:
    """A webhook's lane as the database knows it."""

    webhook_id: str
    # Host and port of its URL, where that was asked for; None also for one that starts jobs.
    host: str | None = None
    # When to look for what is due; None: nothing waits.
    next_due_at: int | None = None
    # Triggers of the running day.
    day_count: int = 0
    health: Health

    @property
    def is_degraded(self) -> bool:
        return self.health.degraded_since is not None


@lru_cache(maxsize=4096)
def split_url(url: str | None) -> tuple[str | None, str | None]:
    """Return a URL without query, fragment and user, which hold secrets, and its host and port."""
    if url is None:
        return None, None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}", host.lower()
