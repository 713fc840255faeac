"""A delivery whose target is a job starts one, and never a second one."""

import json
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import InvalidRequest
from hublet.jobs import webhook_jobs
from hublet.jobs.webhook_jobs import WebhookStart
from hublet.webhooks.records import WebhookSecrets
from scratch_database import wait_until
from webhooks.engine_rows import a_webhook, attempts_of, deliveries_of, delivering, settle, trigger

JOB = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}


class JobStarts(list[WebhookStart]):
    """Records the jobs that are to be started, after it has failed with each of `failures`."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []

    async def start(self, _database: Database, request: WebhookStart) -> str:
        self.append(request)
        if self.failures:
            raise self.failures.pop(0)
        return f"job-of-{request.key}"


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> JobStarts:
    """Every job that a delivery starts in this test."""
    recorded = JobStarts()
    monkeypatch.setattr(webhook_jobs, "start", recorded.start)
    return recorded


async def test_a_job_is_started_with_all_it_needs(database: Database, starts: JobStarts) -> None:
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(
            database, job=JOB, secrets=WebhookSecrets(current="s3cret", for_job={"KEY": "hidden"})
        )
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    [start] = starts
    assert (start.webhook_id, start.key) == (webhook_id, delivery_id)
    assert (start.job, start.source_id, start.secrets) == (JOB, None, {"KEY": "hidden"})
    payload = json.loads(start.environment.pop("WEBHOOK_PAYLOAD"))
    assert payload["webhook"] == {"id": webhook_id, "version": 3}
    assert start.environment == {
        "WEBHOOK_REPO_ID": "ada/engine",
        "WEBHOOK_REPO_TYPE": "model",
        "WEBHOOK_ID": delivery_id,
        "WEBHOOK_SECRET": "s3cret",
    }
    assert "hidden" not in repr(start)
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["job_id"], attempt["reason"]) == (f"job-of-{delivery_id}", None)
    assert [each["state"] for each in await deliveries_of(database, webhook_id)] == ["delivered"]


async def test_a_source_job_is_named_and_without_a_secret_none_is_given(
    database: Database, starts: JobStarts
) -> None:
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(database, job_source_id="7" * 24)
        await trigger(database, webhook_id)
        await settle(deliverer)
    [start] = starts
    assert (start.job, start.source_id, start.secrets) == (None, "7" * 24, {})
    assert "WEBHOOK_SECRET" not in start.environment


@pytest.mark.parametrize(
    ("failure", "reason", "detail"),
    [
        pytest.param(
            InvalidRequest("flavor: there is no such flavor."),
            "job-refused",
            "flavor: there is no such flavor.",
            id="a refusal keeps its own words",
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
    database: Database, starts: JobStarts, failure: Exception, reason: str, detail: str
) -> None:
    starts.failures = [failure]
    async with delivering(database) as deliverer:
        webhook_id = await a_webhook(database, job=JOB)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
    assert [start.key for start in starts] == [delivery_id] * 2
    failed, succeeded = await attempts_of(database, delivery_id)
    assert (failed["reason"], failed["detail"]) == (reason, detail)
    assert succeeded["job_id"] == f"job-of-{delivery_id}"


async def test_after_a_crash_between_start_and_record_the_key_is_the_same(
    database: Database, starts: JobStarts
) -> None:
    async with delivering(database) as deliverer:
        # The database takes no results, as if the process died before it could write them.
        committer = deliverer._committer  # noqa: SLF001 - stopped in the middle.
        await committer.stop()
        webhook_id = await a_webhook(database, job=JOB)
        [delivery_id] = await trigger(database, webhook_id)
        await wait_until(lambda: _is_started(starts))
        await deliverer.abandon()
    async with delivering(database) as deliverer:
        await settle(deliverer)
    assert [start.key for start in starts] == [delivery_id] * 2
    assert len(await attempts_of(database, delivery_id)) == 1


async def _is_started(starts: JobStarts) -> bool:
    return len(starts) == 1
