"""Whose scheduled jobs a request is about, as a type that a route names."""

from typing import Annotated

from fastapi import Depends, Query

from hublet.core.http import Db
from hublet.jobs import service as jobs
from hublet.jobs.errors import LabelNotReadable, NamespaceNotFound
from hublet.jobs.owners import Standing
from hublet.jobs.schedules.errors import ScheduledJobNotFound
from hublet.tokens.auth import JobRunner


async def _before_scheduled_job(
    database: Db, caller: JobRunner, namespace: str, scheduled_job_id: str
) -> Standing:
    # Not the connection of the route: a request that waits for a second one could wait for ever.
    async with database.read() as conn:
        try:
            return await jobs.get_standing(conn, caller, namespace)
        except NamespaceNotFound:
            raise ScheduledJobNotFound(scheduled_job_id) from None


# For the addresses that name a scheduled job: a stranger to its owner hears of the job alone.
BeforeScheduledJob = Annotated[Standing, Depends(_before_scheduled_job)]


async def _asked_labels(
    label: Annotated[
        list[str] | None, Query(description="Each as `key=value`; a job has all of them.")
    ] = None,
) -> frozenset[str]:
    if any("=" not in each for each in label or ()):
        raise LabelNotReadable
    return frozenset(label or ())


# Each as in `name=value`.
AskedLabels = Annotated[frozenset[str], Depends(_asked_labels)]
