"""What is not sent, and why; and what a change of the webhook does to deliveries on their way."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.clock import micros, now
from hublet.core.database import Database
from hublet.core.sealing import KeyRing
from hublet.events import WebhookThrottled
from hublet.webhooks import sealed_secrets
from hublet.webhooks.delivery import dispatcher
from hublet.webhooks.delivery.signing import sign
from hublet.webhooks.records import DELIVERIES_CHANNEL, WebhookSecrets, WebhookState
from people import a_user, an_organization
from scratch_database import wait_until
from webhooks.engine_rows import (
    REPO,
    a_webhook,
    attempts_of,
    change,
    deliveries_of,
    delivering,
    disable,
    events_of,
    lane_of,
    remove,
    settle,
    states_of,
    trigger,
    trigger_many,
)
from webhooks.receivers import answer, receiving
from webhooks.webhook_calls import URL


async def test_what_is_over_the_daily_limit_is_kept_as_throttled(database: Database) -> None:
    async with receiving() as receiver, delivering(database, daily_triggers=3) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        await settle(deliverer)
        await trigger_many(database, [webhook_id], count=4)
        await settle(deliverer)
        await trigger(database, webhook_id, ping=True)
        await settle(deliverer)
        assert len(receiver.requests) == 4
        clock.move(timedelta(hours=23))
        await trigger(database, webhook_id)
        await settle(deliverer)
        assert len(receiver.requests) == 4
        clock.move(timedelta(hours=1, seconds=5))
        await trigger(database, webhook_id)
        await settle(deliverer)

    throttled = ("unsent", "throttled")
    sent = ("delivered", None)
    assert await states_of(database, webhook_id) == [
        sent, sent, sent, throttled, throttled, sent, throttled, sent,
    ]  # fmt: skip
    assert (await lane_of(database, webhook_id))["day_count"] == 1


async def test_there_is_no_daily_limit_unless_one_is_set(database: Database) -> None:
    async with delivering(database) as deliverer:
        # Nothing is sent, but everything counts.
        webhook_id = await a_webhook(database, URL, state=WebhookState.disabled)
        await trigger_many(database, [webhook_id], count=1001)
        await settle(deliverer)

    assert set(await states_of(database, webhook_id)) == {("unsent", "disabled")}


async def test_who_reaches_the_daily_limit_is_notified_once_a_day(database: Database) -> None:
    async with delivering(database, daily_triggers=2) as deliverer:
        webhook_id = await a_webhook(database, URL, state=WebhookState.disabled)
        published = []
        for count, move in ((2, 0), (1, 0), (3, 0), (3, 25), (1, 0)):
            clock.move(timedelta(hours=move))
            await trigger_many(database, [webhook_id], count=count)
            await settle(deliverer)
            published.append(len(await events_of(database, WebhookThrottled)))

    assert published == [0, 1, 1, 2, 2]


async def test_the_limit_of_one_webhook_is_not_anothers(database: Database) -> None:
    async with receiving() as receiver, delivering(database, daily_triggers=2) as deliverer:
        busy = await a_webhook(database, receiver.url)
        quiet = await a_webhook(database, receiver.url)
        await trigger_many(database, [busy], count=3)
        await trigger(database, busy, quiet)
        await settle(deliverer)
    assert [state for state, _ in await states_of(database, busy)] == [
        "delivered", "delivered", "unsent", "unsent",
    ]  # fmt: skip
    assert await states_of(database, quiet) == [("delivered", None)]


async def test_the_last_trigger_is_noted_and_a_ping_is_none(database: Database) -> None:
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id, ping=True)
        await settle(deliverer)
        assert (await lane_of(database, webhook_id))["last_trigger_at"] is None
        before = micros()
        await trigger(database, webhook_id)
        await settle(deliverer)
    assert before <= (await lane_of(database, webhook_id))["last_trigger_at"] <= micros()


async def test_who_lost_the_access_to_a_private_repository_receives_nothing_more(
    database: Database,
) -> None:
    organization = await an_organization(
        database, "rockets", members={"ada": Role.read, "bob": Role.read}
    )
    private = replace(REPO, owner_id=organization.id, private=True, name="rockets/engine")
    async with receiving() as receiver, delivering(database) as deliverer:
        webhooks = [
            await a_webhook(database, receiver.url, owner="ada"),
            await a_webhook(database, receiver.url, owner="bob"),
            await a_webhook(database, receiver.url, owner="bob", owner_id=organization.id),
            await a_webhook(database, receiver.url, owner="eve"),
        ]
        async with database.transaction() as conn:
            bob = await a_user(database, "bob")
            await organizations.remove_member(conn, OPERATOR, organization, bob)
        await trigger(database, *webhooks, repo=private)
        await settle(deliverer)

    assert [await states_of(database, each) for each in webhooks] == [
        [("delivered", None)],
        [("unsent", "no-access")],
        [("delivered", None)],
        [("unsent", "no-access")],
    ]
    assert len(receiver.requests) == 2
    assert await attempts_of(database, (await ids_of(database, webhooks[1]))[0]) == []


async def ids_of(database: Database, webhook_id: str) -> list[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY id", webhook_id
        )
    return [row["id"] for row in rows]


async def test_access_is_checked_again_at_each_retry(database: Database) -> None:
    organization = await an_organization(database, "rockets", members={"ada": Role.read})
    private = replace(REPO, owner_id=organization.id, private=True)
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id, repo=private)
        await settle(deliverer)
        async with database.transaction() as conn:
            ada = await a_user(database, "ada")
            await organizations.remove_member(conn, OPERATOR, organization, ada)
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
    assert len(receiver.requests) == 1
    assert await deliveries_of(database, webhook_id) == [
        {"state": "unsent", "reason": "no-access", "tries": 1, "attempts": 1, "status": 500}
    ]


@pytest.mark.parametrize(
    ("state", "reason"),
    [(WebhookState.disabled, "disabled"), (WebhookState.suspended, "suspended-after-failure")],
)
async def test_a_webhook_that_was_switched_off_in_between_sends_nothing_but_pings(
    database: Database, state: WebhookState, reason: str
) -> None:
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await change(database, webhook_id, state=state)
        await trigger(database, webhook_id)
        await trigger(database, webhook_id, ping=True)
        await settle(deliverer)
    assert len(receiver.requests) == 1
    assert await states_of(database, webhook_id) == [("unsent", reason), ("delivered", None)]


async def test_disabled_in_flight_the_attempt_ends_and_the_next_is_not_made(
    database: Database,
) -> None:
    async with (
        receiving(answer(500), seconds=0.3) as receiver,
        delivering(database) as deliverer,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        await wait_until(lambda: _has_received(receiver.requests, 1))
        await disable(database, webhook_id)
        await settle(deliverer)
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
    assert len(receiver.requests) == 1
    assert await deliveries_of(database, webhook_id) == [
        {"state": "unsent", "reason": "disabled", "tries": 1, "attempts": 1, "status": 500}
    ]


async def _has_received(requests: Sequence[object], count: int) -> bool:
    return len(requests) >= count


async def test_a_webhook_deleted_in_flight_takes_its_rows_along(database: Database) -> None:
    async with (
        receiving(seconds=0.3) as receiver,
        delivering(database) as deliverer,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        other = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id, other], count=20)
        await wait_until(lambda: _has_received(receiver.requests, 1))
        await remove(database, webhook_id)
        await settle(deliverer)
    assert await deliveries_of(database, webhook_id) == []
    assert {each["state"] for each in await deliveries_of(database, other)} == {"delivered"}
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM webhook_attempts") == 20


async def test_a_new_url_and_a_new_secret_count_from_the_next_attempt(database: Database) -> None:
    async with (
        receiving(answer(500)) as old,
        receiving() as new,
        delivering(database) as deliverer,
    ):
        webhook_id = await a_webhook(database, old.url, secrets=WebhookSecrets(current="old"))
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
        rotated = WebhookSecrets(current="new", old="old", old_until=now() + timedelta(hours=24))
        sealed = sealed_secrets.seal(database.hub.keys, webhook_id, rotated)
        await change(
            database,
            webhook_id,
            url=new.url,
            sealed_secret=sealed.secret,
            sealed_old_secret=sealed.old_secret,
            old_secret_until=clock.to_micros(now() + timedelta(hours=24)),
        )
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
        await trigger(database, webhook_id)
        await settle(deliverer)
        clock.move(timedelta(hours=24))
        await trigger(database, webhook_id)
        await settle(deliverer)

    assert len(old.requests) == 1
    assert [each["target"] for each in await attempts_of(database, delivery_id)] == [
        old.url, new.url,
    ]  # fmt: skip
    overlapping, _, alone = new.requests
    assert overlapping.headers["x-webhook-secret"] == "new"
    assert overlapping.headers["webhook-signature"].split(" ") == [
        sign(
            key,
            delivery_id=delivery_id,
            timestamp=int(overlapping.headers["webhook-timestamp"]),
            body=overlapping.body,
        )
        for key in (b"new", b"old")
    ]
    assert len(alone.headers["webhook-signature"].split(" ")) == 1


async def test_a_change_in_this_process_is_seen_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_MOMENT_SECONDS", 3600)
    async with receiving() as old, receiving() as new, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, old.url)
        await trigger(database, webhook_id)
        await settle(deliverer)
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhooks SET url = $1, updated_at = 1", new.url)
            conn.wake(DELIVERIES_CHANNEL)
        await trigger(database, webhook_id)
        await settle(deliverer)
    assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_secret_that_cannot_be_opened_is_no_reason_to_send_unsigned(
    database: Database,
) -> None:
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        foreign = sealed_secrets.seal(KeyRing.new(), webhook_id, WebhookSecrets(current="s3cret"))
        await change(database, webhook_id, sealed_secret=foreign.secret)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    assert receiver.requests == []
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["reason"], attempt["detail"]) == (
        "secret-unreadable",
        "This hub cannot open the webhook's secret any more: please set it again.",
    )
