"""Orders to a runner: image, command, environment and limits of an attempt; opens its secrets."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database
from hublet.core.folders import job_folder
from hublet.jobs import hardware, service
from hublet.jobs.errors import SecretsGone
from hublet.jobs.logs.reader import log_path
from hublet.jobs.records import JobRecord
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import GroupMembership, LaunchOrder
from hublet.runtime.supervisor.records import AttemptRecord
from hublet.runtime.supervisor.transitions import AttemptLimits
from hublet.runtime.volumes.records import PreparedAttempt

_GIB = 2**30
_MIB = 2**20
# Interface 2.2 has one spelling; jobs written for the public service read the other.
_PREFIXES = ("HUB", "HF")
# As many digits as leave room for the longest group and alias in one label of DNS.
_DIGITS = 12


def environment_of(
    job: JobRecord, size: FlavorSize, *, secrets: Mapping[str, str], base_url: str
) -> dict[str, str]:
    """Return every variable of an attempt; what the hub itself says cannot be overwritten."""
    # Clients inside a job speak to the hub that runs it, unless the job says otherwise.
    asked = {"HF_ENDPOINT": base_url} | job.spec.environment | dict(secrets)
    return asked | _hub_variables(job, size) | _network_variables(job)


def _hub_variables(job: JobRecord, size: FlavorSize) -> dict[str, str]:
    facts = {
        "JOB_ID": job.id,
        "ACCELERATOR": size.name if size.devices else "none",
        "CPU_CORES": f"{size.cores:g}",
        "MEMORY": memory_text(size.memory_bytes),
    }
    return facts if job.spec.space is None else facts | {"SPACE_ID": job.spec.space}


def memory_text(size: int) -> str:
    """Return `16Gi`, or mebibytes where it is no whole number of those."""
    return f"{size // _GIB}Gi" if size % _GIB == 0 else f"{size // _MIB}Mi"


def _network_variables(job: JobRecord) -> dict[str, str]:
    if job.spec.network is None:
        return {}
    said = {
        "NETWORK_GROUP_HOSTNAME": group_hostname(job),
        "NETWORK_GROUP_PREFIX": group_prefix(job),
    }
    return {f"{first}_{name}": value for first in _PREFIXES for name, value in said.items()}


def group_hostname(job: JobRecord) -> str:
    """Return the name of everybody in the network group of a job that is in one."""
    return f"g{_group_digest(job)}-{_group_name(job)}"


def group_prefix(job: JobRecord) -> str:
    """Return what an alias follows to be a name in the network group."""
    return f"a{_group_digest(job)}-"


def _group_digest(job: JobRecord) -> str:
    # Interface 2.2: the same name means another group for another owner or resource group.
    identity = f"{job.owner_id}/{job.resource_group_id or ''}/{_group_name(job)}"
    return hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]


def _group_name(job: JobRecord) -> str:
    assert job.spec.network is not None  # noqa: S101 - callers look for the group first.
    return job.spec.network.group


_SECOND = 1_000_000


def limits_of(job: JobRecord, settings: Settings) -> AttemptLimits:
    size = hardware.offered_flavors(settings).get(job.spec.flavor)
    return AttemptLimits(
        start=settings.jobs.start_seconds * _SECOND,
        timeout=timeout_seconds(job, settings) * _SECOND,
        memory_bytes=0 if size is None else size.memory_bytes,
    )


def timeout_seconds(job: JobRecord, settings: Settings) -> int:
    return job.spec.timeout_seconds or settings.jobs.timeout_seconds


def attempt_folder(settings: Settings, attempt: AttemptRecord) -> Path:
    folder = job_folder(settings.database.data_dir, attempt.job_id)
    # Handed on to other processes, which start elsewhere.
    return folder.absolute() / f"attempt-{attempt.number}"


async def order_of(
    database: Database, job: JobRecord, attempt: AttemptRecord, prepared: PreparedAttempt
) -> LaunchOrder:
    settings = database.hub.settings
    size = hardware.offered_flavors(settings).get(job.spec.flavor)
    if size is None:
        raise CannotRun(f"this hub does not offer {job.spec.flavor} any more")
    async with database.read() as conn:
        try:
            secrets = await service.secrets_of(conn, job) if job.secret_names else {}
        except SecretsGone:
            raise CannotRun("its secrets are gone") from None
    return LaunchOrder(
        job_id=job.id,
        number=attempt.number,
        folder=attempt_folder(settings, attempt),
        log=log_path(settings.database.data_dir, job.id).absolute(),
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


def group_of(job: JobRecord) -> GroupMembership | None:
    """Return the network group of a job and the names that it has there."""
    network = job.spec.network
    if network is None:
        return None
    # Interface 2.2: the same name means another group for another owner or resource group.
    key = f"{job.owner_id}/{job.resource_group_id or ''}/{network.group}"
    aliases = (group_prefix(job) + alias for alias in dict.fromkeys(network.aliases))
    return GroupMembership(key=key, names=(group_hostname(job), *aliases))
