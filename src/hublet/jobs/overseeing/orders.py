"""An attempt as a runner is told of it; its secrets are opened here and kept nowhere."""

from pathlib import Path

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.jobs import hardware, service
from hublet.jobs.environment import environment_of, group_hostname, group_prefix
from hublet.jobs.errors import SecretsGone
from hublet.jobs.folders import folder_of
from hublet.jobs.logs.reading import log_of
from hublet.jobs.overseeing.judging import Limits
from hublet.jobs.overseeing.records import Attempt
from hublet.jobs.records import Job
from hublet.jobs.runners.records import CannotRun, Group, Order
from hublet.jobs.volumes.records import Prepared

_SECOND = 1_000_000


def limits_of(job: Job, settings: Settings) -> Limits:
    size = hardware.offered(settings).get(job.spec.flavor)
    return Limits(
        start=settings.jobs.start_seconds * _SECOND,
        timeout=timeout_seconds(job, settings) * _SECOND,
        memory_bytes=0 if size is None else size.memory_bytes,
    )


def timeout_seconds(job: Job, settings: Settings) -> int:
    return job.spec.timeout_seconds or settings.jobs.timeout_seconds


def attempt_folder(settings: Settings, attempt: Attempt) -> Path:
    folder = folder_of(settings.database.data_dir, attempt.job_id)
    # Handed on to other processes, which start elsewhere.
    return folder.absolute() / f"attempt-{attempt.number}"


async def order_of(database: Database, job: Job, attempt: Attempt, prepared: Prepared) -> Order:
    settings = database.hub.settings
    size = hardware.offered(settings).get(job.spec.flavor)
    if size is None:
        raise CannotRun(f"this hub does not offer {job.spec.flavor} any more")
    async with database.read() as conn:
        try:
            secrets = await service.secrets_of(conn, job) if job.secret_names else {}
        except SecretsGone:
            raise CannotRun("its secrets are gone") from None
    return Order(
        job_id=job.id,
        number=attempt.number,
        folder=attempt_folder(settings, attempt),
        log=log_of(settings.database.data_dir, job.id).absolute(),
        image=prepared.image,
        content=prepared.content,
        argv=prepared.argv,
        after_entrypoint=job.spec.space is None and job.spec.command is None,
        environment=environment_of(job, size, secrets=secrets, base_url=settings.base_url),
        cores=size.cores,
        memory_bytes=size.memory_bytes,
        timeout_seconds=timeout_seconds(job, settings),
        grace_seconds=settings.jobs.grace_seconds,
        log_bytes=settings.jobs.log_bytes,
        binds=prepared.binds,
        devices=hardware.devices_of(job.spec.flavor, settings),
        hostname=job.id,
        group=group_of(job),
    )


def group_of(job: Job) -> Group | None:
    """Return the network group of a job and the names that it has there."""
    network = job.spec.network
    if network is None:
        return None
    # Interface 2.2: the same name means another group for another owner or resource group.
    key = f"{job.owner_id}/{job.resource_group_id or ''}/{network.group}"
    aliases = (group_prefix(job) + alias for alias in dict.fromkeys(network.aliases))
    return Group(key=key, names=(group_hostname(job), *aliases))
