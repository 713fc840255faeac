"""Control commands that tests send to the process of their hub, of which one waits until no work is due."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.runtime.supervisor import store as jobs
from hublet.testing.child import store
from hublet.testing.child.hubs import HubFactory, RunningHub
from hublet.testing.child.serving import HubSwitch
from hublet.webhooks import store as webhooks
from hublet.webhooks.activity import service as activity
from hublet.webhooks.activity import store as deliveries
from hublet.webhooks.activity.records import DeliveryFilter
from hublet.webhooks.activity.schemas import FullDelivery
from hublet.webhooks.delivery import lanes_store as lanes

_PAUSE_SECONDS = 0.002
# A task that schedules itself again and again must not block a test for ever.
_MAX_STEPS = 1000


class StillBusy(Exception):
    """The worker does not become idle; the message is a sentence for the test."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The hub's worker was still busy after {seconds:g} seconds: a receiver may be slow "
            "to answer, or wait for the very test that waits here."
        )


async def settle(hub: RunningHub, *, seconds: float) -> None:
    """Wait until all due work is done: events, tasks, deliveries. Jobs are not waited for."""
    try:
        async with asyncio.timeout(seconds):
            await _settle(hub)
    except TimeoutError:
        raise StillBusy(seconds) from None


async def _settle(hub: RunningHub) -> None:
    while await _is_busy(hub.database):  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_PAUSE_SECONDS)


async def _is_busy(database: Database) -> bool:
    async with database.read() as conn:
        return await store.is_busy(conn)


async def forward(hub: RunningHub, by: timedelta, *, seconds: float) -> None:
    """Move the clock from one due moment to the next, as if the time had really passed.

    The hub's housekeeping runs only once for the whole time, not once a day.
    """
    await settle(hub, seconds=seconds)
    goal = micros() + by // timedelta(microseconds=1)
    for _ in range(_MAX_STEPS):
        at = await _next_due(hub)
        if at is None or at > goal:
            break
        await _move_to(hub, at, seconds=seconds)
    await _move_to(hub, goal, seconds=seconds)


async def jump(hub: RunningHub, by: timedelta, *, seconds: float) -> None:
    """Move the clock at once, also backwards."""
    hub.move_clock(by)
    await settle(hub, seconds=seconds)


async def _move_to(hub: RunningHub, at: int, *, seconds: float) -> None:
    by = timedelta(microseconds=max(0, at - micros()))
    await jump(hub, by, seconds=seconds)


async def _next_due(hub: RunningHub) -> int | None:
    async with hub.database.read() as conn:
        due_times = (
            await store.next_task_at(conn, except_for=hub.housekeeping),
            await lanes.next_due(conn, except_for=()),
            await jobs.next_due_after(conn, micros()),
        )
    return min((at for at in due_times if at is not None), default=None)


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
        await settle(self._running, seconds=seconds)
        return {"now": clock.wire(clock.now())}

    async def forward(self, *, by: float, seconds: float) -> dict[str, Any]:
        await forward(self._running, timedelta(seconds=by), seconds=seconds)
        return {"now": clock.wire(clock.now())}

    async def jump(self, *, by: float, seconds: float) -> dict[str, Any]:
        await jump(self._running, timedelta(seconds=by), seconds=seconds)
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
