"""Whatever happens in whatever order: a committed match is delivered, or visible with a reason."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.core.sealing import KeyRing
from hublet.webhooks.delivery import claims
from hublet.webhooks.delivery.engine import DeliveryEngine
from hublet.webhooks.records import WebhookSecrets
from hublet.webhooks.sealed_secrets import seal
from outgoing_servers import Request
from webhooks.engine_rows import (
    a_webhook,
    change,
    disable,
    enable,
    remove,
    set_webhooks,
    settle,
    trigger_many,
)
from webhooks.receivers import answer, receiving

T = TypeVar("T")

RING = KeyRing.new()
REASONS = {
    "unsent": {"disabled", "suspended-after-failure", "throttled"},
    "failed": {"exhausted", "gone"},
}
PICK = strategies.integers(0, 9)


class Deliveries(RuleBasedStateMachine):
    """Webhooks, a receiver that answers as it is set to, and a worker that may die."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.webhooks: list[str] = []
        self.expected: dict[str, str] = {}
        self.arrived: set[str] = set()
        # What a webhook may prove itself with: while it is being changed, either secret.
        self.secrets: dict[str, set[str]] = {}
        self.newest: dict[str, str] = {}
        self.wrong: list[str] = []
        self.status: dict[str, int] = {}
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        shutil.copy(self.template, folder / "hub.db")
        plain = Settings()
        hub = Hub(
            settings=replace(plain, database=replace(plain.database, data_dir=folder)), keys=RING
        )
        self.database = await self.stack.enter_async_context(open_database(hub))
        self.receiver = await self.stack.enter_async_context(receiving(self.receive))
        set_webhooks(self.database, daily_triggers=30)
        self.begin()

    def begin(self) -> None:
        self.worker = new_object_id()
        self.deliverer = DeliveryEngine(self.database, self.worker)
        self.deliverer.start()

    def receive(self, request: Request) -> bytes:
        """Note what arrives, and whether it is signed with the secret of that moment."""
        path = request.line.split(" ")[1].split("/")
        webhook_id, delivery_id = path[2], request.headers["webhook-id"]
        if request.headers["x-webhook-secret"] not in self.secrets[webhook_id]:
            self.wrong.append(delivery_id)
        status = self.status[webhook_id]
        if status // 100 == 2:
            self.arrived.add(delivery_id)
        return answer(status)

    def some(self, number: int) -> str:
        return self.webhooks[number % len(self.webhooks)]

    @rule(status=strategies.sampled_from([200, 200, 500]))
    def create(self, status: int) -> None:
        async def add() -> None:
            url = self.receiver.url
            webhook_id = await a_webhook(
                self.database, secrets=WebhookSecrets(current="first"), url=url
            )
            self.secrets[webhook_id], self.status[webhook_id] = {"first"}, status
            self.newest[webhook_id] = "first"
            await change(self.database, webhook_id, url=f"{url}/{webhook_id}")
            self.webhooks.append(webhook_id)

        self.run(add())

    @precondition(lambda self: self.webhooks)
    @rule(number=PICK, count=strategies.integers(1, 12))
    def happen(self, number: int, count: int) -> None:
        webhook_id = self.some(number)
        groups = self.run(trigger_many(self.database, [webhook_id], count=count))
        self.expected |= {delivery_id: webhook_id for group in groups for delivery_id in group}

    @precondition(lambda self: self.webhooks)
    @rule(number=PICK, status=strategies.sampled_from([200, 204, 500, 503, 410]))
    def answer_from_now_on(self, number: int, status: int) -> None:
        self.status[self.some(number)] = status

    @precondition(lambda self: self.webhooks)
    @rule(number=PICK, on=strategies.booleans())
    def switch(self, number: int, on: bool) -> None:  # noqa: FBT001 - drawn.
        switching = enable if on else disable
        self.run(switching(self.database, self.some(number)))

    @precondition(lambda self: self.webhooks)
    @rule(number=PICK)
    def edit_in_flight(self, number: int) -> None:
        """Change the address and the secret; what is on its way may still have the old ones."""
        webhook_id = self.some(number)
        secret = f"secret {number}"

        async def edit() -> None:
            self.secrets[webhook_id].add(secret)
            sealed = seal(self.database.hub.keys, webhook_id, WebhookSecrets(current=secret))
            await change(
                self.database,
                webhook_id,
                url=f"{self.receiver.url}/{webhook_id}/{number}",
                sealed_secret=sealed.secret,
            )
            self.newest[webhook_id] = secret

        self.run(edit())

    @precondition(lambda self: len(self.webhooks) > 1)
    @rule(number=PICK)
    def delete(self, number: int) -> None:
        webhook_id = self.some(number)
        self.run(remove(self.database, webhook_id))
        self.webhooks.remove(webhook_id)
        self.expected = {d: w for d, w in self.expected.items() if w != webhook_id}

    @rule(pause=strategies.sampled_from([0, 0.001, 0.005, 0.02]))
    def crash(self, pause: float) -> None:
        """Die in the middle; whoever comes next finds out, as a worker does, and takes over."""

        async def die() -> None:
            await asyncio.sleep(pause)
            before = asyncio.all_tasks() - {asyncio.current_task()}
            mine = {task for task in before if task.get_name().startswith("webhook-")}
            mine |= self.deliverer._dispatcher._running  # noqa: SLF001 - a crash asks nobody.
            for task in mine:
                task.cancel()
            await asyncio.gather(*mine, return_exceptions=True)
            await self.deliverer._dispatcher._sender.close()  # noqa: SLF001
            async with self.database.transaction() as conn:
                await claims.release(conn, worker=self.worker)
            self.begin()

        self.run(die())

    @rule(hours=strategies.sampled_from([0.002, 0.01, 0.1, 1, 12, 30]))
    def wait(self, hours: float) -> None:
        clock.move(timedelta(hours=hours))

    @rule()
    def look(self) -> None:
        self.run(settle(self.deliverer))
        self.run(self.check())
        self.secrets = {each: {self.newest[each]} for each in self.secrets}

    async def check(self) -> None:
        assert self.wrong == []
        async with self.database.read() as conn:
            rows = await conn.fetch_all(
                """
                SELECT d.id, d.state, d.reason, d.claimed_by, d.due_at, l.next_due_at,
                    l.degraded_since, (
                        SELECT count(*) FROM webhook_attempts a
                        WHERE a.delivery_id = d.id AND a.status BETWEEN 200 AND 299
                    ) AS successes
                FROM webhook_deliveries d LEFT JOIN webhook_lanes l ON l.webhook_id = d.webhook_id
                """
            )
        assert {row["id"] for row in rows} == set(self.expected)
        for row in rows:
            self.check_one(row)

    def check_one(self, row: Any) -> None:
        state = row["state"]
        assert row["claimed_by"] is None
        assert row["successes"] == (state == "delivered")
        if state == "delivered":
            assert row["id"] in self.arrived
        elif state == "pending":
            # It will be looked at: when it is due, or when its target is probed.
            assert row["next_due_at"] is not None
            assert row["degraded_since"] is not None or row["next_due_at"] <= row["due_at"]
        else:
            assert row["reason"] in REASONS[state]

    def teardown(self) -> None:
        """In the end all targets are well, and nothing is left to be done."""
        self.status = dict.fromkeys(self.status, 200)
        for hours in (0, *[2] * 12, 24, 24, 24, 24):
            clock.move(timedelta(hours=hours))
            self.run(settle(self.deliverer))
        self.run(self.check())
        assert self.run(self.pending()) == 0
        self.run(self.deliverer.stop())
        self.run(self.stack.aclose())
        self.runner.close()
        clock.reset()

    async def pending(self) -> int:
        async with self.database.read() as conn:
            count: int = await conn.fetch_value(
                "SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'"
            )
        return count


def test_every_committed_match_is_delivered_or_visible_with_a_reason(
    sqlite_template: Path,
) -> None:
    Deliveries.template = sqlite_template
    run_state_machine_as_test(
        Deliveries,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
