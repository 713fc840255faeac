"""Presenter of jobs: a record and the names that belong to it become a response."""

from collections.abc import Sequence

from hublet.accounts.records import Owner
from hublet.core.database import Reader
from hublet.jobs import schemas, store
from hublet.jobs.records import JobRecord


async def render(conn: Reader, owner: Owner, job: JobRecord) -> schemas.Job:
    [shown] = await render_all(conn, owner, [job])
    return shown


async def render_all(conn: Reader, owner: Owner, jobs: Sequence[JobRecord]) -> list[schemas.Job]:
    asides = await store.find_details(conn, [job.id for job in jobs])
    settings = conn.hub.settings
    return [schemas.render_record(job, owner, asides[job.id], settings) for job in jobs]
