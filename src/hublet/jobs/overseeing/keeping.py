"""Keeps what an attempt wrote into its volumes, before its job is over."""

import asyncio
from pathlib import Path

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.jobs.logs.reading import log_of
from hublet.jobs.overseeing.orders import attempt_folder
from hublet.jobs.overseeing.records import Attempt
from hublet.jobs.records import Job
from hublet.jobs.volumes.returning import write_back


async def keep(database: Database, job: Job, attempt: Attempt) -> None:
    """Write the volumes back; what could not be written is told at the end of the log."""
    if not job.spec.mounts:
        return
    settings = database.hub.settings
    refusals = await write_back(database, job, folder=attempt_folder(settings, attempt))
    if refusals:
        log = log_of(settings.database.data_dir, job.id)
        await asyncio.to_thread(_add, log, refusals)


def _add(log: Path, lines: list[str]) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.writelines(f"{micros()} {' '.join(line.split())}\n" for line in lines)
