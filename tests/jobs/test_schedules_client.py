"""Jobs that start by the clock, as the public client sets them up over a socket."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from hublet.core.database import Database
from jobs.public_client import public_client


@pytest.fixture
async def api(app: FastAPI, database: Database) -> AsyncIterator[HfApi]:
    async with public_client(app, database, "ada") as api:
        yield api


def use_all_of_it(api: HfApi) -> None:
    """Do what `hf jobs scheduled` does, command by command."""
    spec: dict[str, Any] = {"image": "python:3.12", "command": ["true"], "secrets": {"KEY": "x"}}
    made = api.create_scheduled_job(
        **spec, schedule="@daily", name="x", timeout="2h", attempts=2, expose=[80], namespace="ada"
    )
    assert (made.schedule, made.suspend, made.concurrency) == ("@daily", False, False)
    assert made.owner.name == "ada"
    assert made.job_spec.labels == {"name": "x"}
    assert (made.job_spec.timeout, made.job_spec.retry) == (7200, 1)
    assert (made.job_spec.secrets, made.job_spec.expose) == ({"KEY": None}, [80])
    assert made.status.last_job is None
    assert made.status.next_job_run_at is not None
    assert made.status.next_job_run_at > datetime.now(UTC)

    which: dict[str, Any] = {"scheduled_job_id": made.id, "namespace": "ada"}
    [listed] = api.list_scheduled_jobs(labels={"name": "x"}, namespace="ada")
    assert listed == made
    assert api.list_scheduled_jobs(labels={"name": "y"}, namespace="ada") == []
    api.suspend_scheduled_job(**which)
    assert api.inspect_scheduled_job(**which).suspend
    api.resume_scheduled_job(**which)
    changed = api.update_scheduled_job_schedule(**which, schedule="0 9 * * 1")
    assert (changed.schedule, changed.suspend) == ("0 9 * * 1", False)
    labelled = api.update_scheduled_job_labels(**which, labels={"name": "y"})
    assert labelled.job_spec.labels == {"name": "y"}
    job = api.trigger_scheduled_job(**which)
    assert job.initiator is not None
    assert (job.initiator.type, job.initiator.id) == ("scheduled-job", made.id)
    last = api.inspect_scheduled_job(**which).status.last_job
    assert last is not None
    assert last.id == job.id
    with pytest.raises(HfHubHTTPError, match="409"):
        api.trigger_scheduled_job(**which)
    api.delete_scheduled_job(**which)
    with pytest.raises(HfHubHTTPError, match="404"):
        api.inspect_scheduled_job(**which)


async def test_the_public_client_works_unchanged(api: HfApi) -> None:
    await asyncio.to_thread(use_all_of_it, api)
