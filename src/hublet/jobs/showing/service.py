"""Jobs as answers, with the names that belong to them."""

from collections.abc import Sequence

from hublet.core.database import Reader
from hublet.jobs import store
from hublet.jobs.owners import Owner
from hublet.jobs.records import Job
from hublet.jobs.showing import schemas


async def show(conn: Reader, owner: Owner, job: Job) -> schemas.Job:
    [shown] = await show_all(conn, owner, [job])
    return shown


async def show_all(conn: Reader, owner: Owner, jobs: Sequence[Job]) -> list[schemas.Job]:
    asides = await store.asides(conn, [job.id for job in jobs])
    settings = conn.hub.settings
    return [schemas.show(job, owner, asides[job.id], settings) for job in jobs]
