"""Control commands that tests send to the process of their hub."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from hublet.core import clock
from hublet.testing.child import idle, store
from hublet.testing.child.hubs import HubFactory, RunningHub
from hublet.testing.child.idle import StillBusy
from hublet.testing.child.serving import HubSwitch
from hublet.webhooks import store as webhooks
from hublet.webhooks.activity import service as activity
from hublet.webhooks.activity import store as deliveries
from hublet.webhooks.activity.records import DeliveryFilter
from hublet.webhooks.activity.schemas import FullDelivery

_MAX_DELIVERIES = 10_000


class Control:
    def __init__(
        self, hubs: HubFactory, switch: HubSwitch, *, hub: RunningHub | None = None
    ) -> None:
        self._hubs = hubs
        self._switch = switch
        self._hub = hub
        self._commands: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
            "reset": self.reset,
            "settle": self.settle,
            "forward": self.forward,
            "jump": self.jump,
            "deliveries": self.deliveries,
        }

    async def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a command and return its reply; an expected error is a sentence in it."""
        try:
            return await self._commands[request.pop("do")](**request)
        except StillBusy as error:
            return {"error": str(error)}

    async def reset(self) -> dict[str, Any]:
        await self._switch.close()
        self._hub = await self._hubs.next()
        self._switch.open(self._hub.app)
        settings = self._hub.database.hub.settings
        return {"address": settings.base_url, "data_dir": str(settings.database.data_dir)}

    async def end(self) -> None:
        await self._switch.close()
        self._hub = None
        await self._hubs.close()

    async def settle(self, *, seconds: float) -> dict[str, Any]:
        await idle.settle(self._running, seconds=seconds)
        return {"now": clock.wire(clock.now())}

    async def forward(self, *, by: float, seconds: float) -> dict[str, Any]:
        await idle.forward(self._running, timedelta(seconds=by), seconds=seconds)
        return {"now": clock.wire(clock.now())}

    async def jump(self, *, by: float, seconds: float) -> dict[str, Any]:
        await idle.jump(self._running, timedelta(seconds=by), seconds=seconds)
        return {"now": clock.wire(clock.now())}

    async def deliveries(self, *, webhook: str) -> dict[str, Any]:
        """Return the deliveries of a webhook, by its id or URL, or of all; oldest first."""
        listed: list[FullDelivery] = []
        async with self._running.database.read() as conn:
            for webhook_id, owner_id in await store.list_webhooks(conn, webhook):
                known = await webhooks.find(conn, webhook_id, owner_id=owner_id)
                assert known is not None  # noqa: S101 - for the type: it was listed just now
                window = await deliveries.list_of(
                    conn, webhook_id, DeliveryFilter(), limit=_MAX_DELIVERIES
                )
                listed += [
                    FullDelivery.of_webhook(
                        await activity.get_delivery(conn, known, each.id), known
                    )
                    for each in window.deliveries
                ]
        listed.sort(key=lambda each: each.id)
        return {"deliveries": _DELIVERIES.dump_python(listed, mode="json")}

    @property
    def _running(self) -> RunningHub:
        assert self._hub is not None  # noqa: S101 - commands come after the first reset
        return self._hub


_DELIVERIES = TypeAdapter(list[FullDelivery])
