"""Access to jobs and scheduled jobs, as annotated types that a route names."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query, Request

from hublet.core.database import Database
from hublet.core.http import Db
from hublet.core.http.exchange import exchange_of
from hublet.jobs import service
from hublet.jobs.access import JobAccess, filter_for, get_access
from hublet.jobs.errors import (
    JobNotFound,
    LabelNotReadable,
    NamespaceNotFound,
    ScheduledJobNotFound,
)
from hublet.jobs.records import Availability, JobFilter, Meter, Stage
from hublet.tokens.auth import JobRunner, caller_of

# In the User-Agent of `huggingface_hub`, the `hf` command and `@huggingface/hub`.
_PUBLIC_CLIENTS = ("hf_hub/", "huggingface.js")


def is_public_client(request: Request) -> bool:
    """Tell whether a public client calls: only those get more than interface 2.2 shows."""
    agent = request.headers.get("user-agent", "")
    return any(name in agent for name in _PUBLIC_CLIENTS)


async def _access_to_jobs(
    request: Request, database: Db, caller: JobRunner, namespace: str
) -> JobAccess:
    # Not the route's connection: a request that holds one and waits for another could deadlock.
    async with database.read() as conn:
        access = await get_access(conn, caller, namespace)
    return replace(access, for_public_client=is_public_client(request))


# For paths that name an owner of jobs.
AccessToJobs = Annotated[JobAccess, Depends(_access_to_jobs)]


async def _access_to_job(
    request: Request, database: Db, caller: JobRunner, namespace: str, job_id: str
) -> JobAccess:
    try:
        return await _access_to_jobs(request, database, caller, namespace)
    except NamespaceNotFound:
        raise JobNotFound(job_id) from None


# For paths that name a job: the refusal names the job, not its owner.
AccessToJob = Annotated[JobAccess, Depends(_access_to_job)]


async def _label_filter(
    label: Annotated[
        list[str] | None, Query(description="Each as `key=value`; a job has all of them.")
    ] = None,
) -> frozenset[str]:
    return read_labels(label or ())


def read_labels(labels: Iterable[str]) -> frozenset[str]:
    """Return the labels of a filter, each written `key=value`."""
    found = frozenset(labels)
    if any("=" not in each for each in found):
        raise LabelNotReadable
    return found


# Each as in `name=value`.
LabelFilterQuery = Annotated[frozenset[str], Depends(_label_filter)]


async def _job_filter(
    access: AccessToJobs,
    labels: LabelFilterQuery,
    stage: Annotated[
        list[Stage] | None, Query(max_length=len(Stage), description="Any of these.")
    ] = None,
) -> JobFilter:
    return filter_for(access, stages=stage or (), labels=labels)


JobFilterQuery = Annotated[JobFilter, Depends(_job_filter)]


async def _availability(request: Request) -> Availability:
    availability: Availability = request.app.state.jobs
    return availability


# What can run here, for routes that start a job.
JobAvailability = Annotated[Availability, Depends(_availability)]


async def _meter(request: Request) -> Meter:
    meter: Meter = request.app.state.job_meter.usage
    return meter


JobUsageMeter = Annotated[Meter, Depends(_meter)]


async def recheck_access(
    request: Request, database: Database, access: JobAccess, job_id: str
) -> None:
    """Refuse a caller who follows a job and may not see it any more."""
    exchange_of(request).known_caller = None
    caller = await caller_of(request)
    async with database.read() as conn:
        access_now = await get_access(conn, caller, access.owner.name)
        await service.get(conn, access_now, job_id)


async def _access_to_scheduled_job(
    request: Request, database: Db, caller: JobRunner, namespace: str, scheduled_job_id: str
) -> JobAccess:
    try:
        return await _access_to_jobs(request, database, caller, namespace)
    except NamespaceNotFound:
        raise ScheduledJobNotFound(scheduled_job_id) from None


# For paths that name a scheduled job: the refusal names it, not its owner.
AccessToScheduledJob = Annotated[JobAccess, Depends(_access_to_scheduled_job)]
