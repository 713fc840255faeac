"""Whose jobs a request is about, as a type that a route names."""

from typing import Annotated

from fastapi import Depends, Query, Request

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.core.http import Db
from hublet.core.http.exchange import exchange_of
from hublet.jobs import service
from hublet.jobs.availability import Availability
from hublet.jobs.errors import JobNotFound, LabelNotReadable, NamespaceNotFound
from hublet.jobs.owners import Standing
from hublet.jobs.records import Stage
from hublet.jobs.showing.records import Asked
from hublet.tokens.auth import JobRunner, caller_of

# A deleted job is listed only for those who ask for it.
_STAGES = tuple(stage for stage in Stage if stage is not Stage.deleted)


async def _among_jobs(database: Db, caller: JobRunner, namespace: str) -> Standing:
    # Not the connection of the route: a request that waits for a second one could wait for ever.
    async with database.read() as conn:
        return await service.get_standing(conn, caller, namespace)


# For the addresses that name an owner of jobs.
AmongJobs = Annotated[Standing, Depends(_among_jobs)]


async def _before_job(database: Db, caller: JobRunner, namespace: str, job_id: str) -> Standing:
    try:
        return await _among_jobs(database, caller, namespace)
    except NamespaceNotFound:
        raise JobNotFound(job_id) from None


# For the addresses that name a job: who is a stranger to its owner hears of the job alone.
BeforeJob = Annotated[Standing, Depends(_before_job)]


async def _asked_jobs(
    standing: AmongJobs,
    stage: Annotated[list[Stage] | None, Query(description="Any of these.")] = None,
    label: Annotated[
        list[str] | None, Query(description="Each as `key=value`; a job has all of them.")
    ] = None,
) -> Asked:
    if any("=" not in each for each in label or ()):
        raise LabelNotReadable
    return Asked(
        owner_id=standing.owner.id,
        user_id=standing.caller.user_id,
        sees_every_group=standing.role is Role.admin,
        stages=tuple(stage or _STAGES),
        labels=frozenset(label or ()),
    )


AskedJobs = Annotated[Asked, Depends(_asked_jobs)]


async def _availability(request: Request) -> Availability:
    availability: Availability = request.app.state.jobs
    return availability


# What can be run here, for the routes that start something.
WhatRuns = Annotated[Availability, Depends(_availability)]


async def check_again(
    request: Request, database: Database, standing: Standing, job_id: str
) -> None:
    """Refuse somebody who follows a job and may not see it any more."""
    exchange_of(request).known_caller = None
    caller = await caller_of(request)
    async with database.read() as conn:
        again = await service.get_standing(conn, caller, standing.owner.name)
        await service.get(conn, again, job_id)
