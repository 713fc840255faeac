"""Client of the webhooks API: webhooks and their deliveries."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from hublet.client.events import Event, follow
from hublet.client.hub import Hub, Query, path_of

BOTH_DOMAINS = ("repo", "discussion")


class WatchedItem(TypedDict):
    type: str
    name: str
    avatarUrl: NotRequired[str]


class Webhook(TypedDict):
    id: str
    url: NotRequired[str]
    job: NotRequired[dict[str, Any]]
    jobSourceId: NotRequired[str]
    disabled: bool | Literal["suspended-after-failure"]
    watched: list[WatchedItem]
    hasSecret: bool
    domains: list[str]
    lastTriggerAt: NotRequired[str]


class WebhookActivity(TypedDict):
    secretNames: list[str]
    runsAs: NotRequired[str]
    triggers: int
    dailyLimit: NotRequired[int]
    throttled: bool


class EventRepo(TypedDict):
    type: str
    name: str


class DeliveryEvent(TypedDict):
    id: str
    scope: str
    action: str
    repo: EventRepo
    createdAt: str


class Delivery(TypedDict):
    id: str
    state: Literal["pending", "delivered", "failed", "unsent"]
    reason: NotRequired[str]
    # Absent when the webhook's owner may not know it.
    event: NotRequired[DeliveryEvent]
    attempts: int
    status: NotRequired[int]
    ping: NotRequired[bool]
    createdAt: str
    # Only in a stream, and together with the event.
    payload: NotRequired[dict[str, Any]]


class DeliveryOutcome(TypedDict):
    deliveryId: str
    # 0 without a response.
    status: int
    reason: NotRequired[str]
    jobId: NotRequired[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """One's own webhooks at a hub, or those of an organization."""

    hub: Hub
    organization: str | None = None

    def list(self) -> list[Webhook]:
        webhooks: list[Webhook] = self.hub.get(self._path())
        return webhooks

    def get(self, webhook_id: str) -> Webhook:
        return self._webhook(self.hub.get(self._path(webhook_id)))

    def create(self, body: Mapping[str, object]) -> Webhook:
        """Create a webhook, for both domains unless the body names them."""
        return self._webhook(self.hub.post(self._path(), {"domains": BOTH_DOMAINS} | dict(body)))

    def update(self, webhook_id: str, body: Mapping[str, object]) -> Webhook:
        return self._webhook(self.hub.post(self._path(webhook_id), body))

    def enable(self, webhook_id: str) -> Webhook:
        return self._webhook(self.hub.post(self._path(webhook_id, "enable")))

    def disable(self, webhook_id: str) -> Webhook:
        return self._webhook(self.hub.post(self._path(webhook_id, "disable")))

    def delete(self, webhook_id: str) -> None:
        self.hub.delete(self._path(webhook_id))

    def activity(self, webhook_id: str) -> WebhookActivity:
        activity: WebhookActivity = self.hub.get(self._path(webhook_id, "activity"))
        return activity

    def deliveries(self, webhook_id: str, query: Query) -> Iterator[Delivery]:
        """Yield deliveries, newest first, fetched page by page."""
        return self.hub.pages(self._path(webhook_id, "deliveries"), query)

    def replay(self, webhook_id: str, delivery_id: str) -> DeliveryOutcome:
        sent: DeliveryOutcome = self.hub.post(self._path(webhook_id, "replay", delivery_id))
        return sent

    def recover(self, webhook_id: str, body: Mapping[str, object]) -> int:
        """Return how many deliveries are sent again."""
        count: int = self.hub.post(self._path(webhook_id, "recover"), body)["count"]
        return count

    def ping(self, webhook_id: str) -> DeliveryOutcome:
        sent: DeliveryOutcome = self.hub.post(self._path(webhook_id, "ping"))
        return sent

    def follow(
        self,
        webhook_id: str,
        *,
        last_id: str | None = None,
        on_connect: Callable[[], None],
        on_disconnect: Callable[[str], None],
    ) -> Iterator[Event]:
        """Yield an event for each delivery that comes or changes, for ever."""
        path = self._path(webhook_id, "deliveries", "stream")
        return follow(
            self.hub, path, last_id=last_id, on_connect=on_connect, on_disconnect=on_disconnect
        )

    def _path(self, *parts: str) -> str:
        start = "/api/settings/webhooks"
        if self.organization is not None:
            start = path_of("/api/organizations/{name}/settings/webhooks", name=self.organization)
        return start + "".join(path_of("/{part}", part=part) for part in parts)

    @staticmethod
    def _webhook(response: dict[str, Any]) -> Webhook:
        webhook: Webhook = response["webhook"]
        return webhook
