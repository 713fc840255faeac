"""A delivery whose target is a job starts one, and never a second one."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import InvalidRequest
from hublet.webhooks.delivery import jobs
from hublet.webhooks.delivery.jobs import JobOrder
from hublet.webhooks.records import WebhookSecrets
from scratch_database import wait_until
from webhooks.engine_rows import a_webhook, attempts_of, deliveries_of, delivering, settle, trigger

JOB = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}


class Orders(list[JobOrder]):
    """Starts jobs; fails in the ways it is told before it does."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)

    async def start(self, _database: Database, order: JobOrder) -> str:
        self.append(order)
        if self._failures:
            raise self._failures.pop(0)
        return f"job-of-{order.key}"


@pytest.fixture(autouse=True)
def _no_starter() -> Iterator[None]:
    # A worker of another test may have set one.
    jobs.set_starter(None)
    yield
    jobs.set_starter(None)


async def test_while_nothing_runs_jobs_the_delivery_says_so_and_waits(database: Database) -> None:
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(database, job=JOB)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    reason = "jobs-unavailable"
    assert await deliveries_of(database, webhook_id) == [
        {"state": "pending", "reason": reason, "tries": 1, "attempts": 1, "status": None}
    ]
    assert await attempts_of(database, delivery_id) == [
        {
            "number": 1,
            "target": None,
            "job_id": None,
            "status": None,
            "reason": reason,
            "detail": "This hub does not run jobs yet.",
            "response": None,
        }
    ]


async def test_a_job_is_started_with_all_it_needs(database: Database) -> None:
    orders = Orders()
    jobs.set_starter(orders.start)
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(
            database, job=JOB, secrets=WebhookSecrets(current="s3cret", for_job={"KEY": "hidden"})
        )
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    [order] = orders
    assert (order.webhook_id, order.key) == (webhook_id, delivery_id)
    assert (order.job, order.source_id, order.secrets) == (JOB, None, {"KEY": "hidden"})
    payload = json.loads(order.environment.pop("WEBHOOK_PAYLOAD"))
    assert payload["webhook"] == {"id": webhook_id, "version": 3}
    assert order.environment == {
        "WEBHOOK_REPO_ID": "ada/engine",
        "WEBHOOK_REPO_TYPE": "model",
        "WEBHOOK_ID": delivery_id,
        "WEBHOOK_SECRET": "s3cret",
    }
    assert "hidden" not in repr(order)
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["job_id"], attempt["reason"]) == (f"job-of-{delivery_id}", None)
    assert [each["state"] for each in await deliveries_of(database, webhook_id)] == ["delivered"]


async def test_a_source_job_is_named_and_without_a_secret_none_is_given(
    database: Database,
) -> None:
    orders = Orders()
    jobs.set_starter(orders.start)
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(database, job_source_id="7" * 24)
        await trigger(database, webhook_id)
        await settle(deliverer)
    [order] = orders
    assert (order.job, order.source_id, order.secrets) == (None, "7" * 24, {})
    assert "WEBHOOK_SECRET" not in order.environment


@pytest.mark.parametrize(
    ("failure", "reason", "detail"),
    [
        pytest.param(
            InvalidRequest("flavor: there is no such flavor."),
            "job-refused",
            "flavor: there is no such flavor.",
            id="a refusal is told in its own words",
        ),
        pytest.param(
            RuntimeError("a secret of the hub"),
            "job-failed",
            "The job could not be started; the hub tries again.",
            id="an error of the hub is not",
        ),
        pytest.param(
            TimeoutError(), "timeout", "The job could not be started in time.", id="too slow"
        ),
    ],
)
async def test_a_job_that_cannot_be_started_is_tried_again_under_the_same_key(
    database: Database, failure: Exception, reason: str, detail: str
) -> None:
    orders = Orders(failure)
    jobs.set_starter(orders.start)
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(database, job=JOB)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
    assert [order.key for order in orders] == [delivery_id] * 2
    failed, succeeded = await attempts_of(database, delivery_id)
    assert (failed["reason"], failed["detail"]) == (reason, detail)
    assert succeeded["job_id"] == f"job-of-{delivery_id}"


async def test_after_a_crash_between_start_and_record_the_key_is_the_same(
    database: Database,
) -> None:
    orders = Orders()
    jobs.set_starter(orders.start)
    async with delivering(database) as deliverer:
        # The database takes no results, as if the process died before it could write them.
        committer = deliverer._committer  # noqa: SLF001 - stopped in the middle.
        await committer.stop()
        webhook_id = await a_webhook(database, job=JOB)
        [delivery_id] = await trigger(database, webhook_id)
        await wait_until(lambda: _is_started(orders))
        await deliverer.abandon()
    async with delivering(database) as deliverer:
        await settle(deliverer)
    assert [order.key for order in orders] == [delivery_id] * 2
    assert len(await attempts_of(database, delivery_id)) == 1


async def _is_started(orders: Orders) -> bool:
    return len(orders) == 1
