"""What the environment of an attempt says beside what its owner wrote into it."""

import hashlib
from collections.abc import Mapping

from hublet.core.config.kinds import FlavorSize
from hublet.jobs.records import Job

_GIB = 2**30
_MIB = 2**20
# Interface 2.2 has one spelling; jobs written for the public service read the other.
_SPELLINGS = ("HUB", "HF")
# As many digits as leave room for the longest group and alias in one label of DNS.
_DIGITS = 12


def environment_of(
    job: Job, size: FlavorSize, *, secrets: Mapping[str, str], base_url: str
) -> dict[str, str]:
    """Return every variable of an attempt; what the hub itself says cannot be overwritten."""
    # Clients inside a job speak to the hub that runs it, unless the job says otherwise.
    asked = {"HF_ENDPOINT": base_url} | job.spec.environment | dict(secrets)
    return asked | _facts(job, size) | _network(job)


def _facts(job: Job, size: FlavorSize) -> dict[str, str]:
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


def _network(job: Job) -> dict[str, str]:
    if job.spec.network is None:
        return {}
    said = {
        "NETWORK_GROUP_HOSTNAME": group_hostname(job),
        "NETWORK_GROUP_PREFIX": group_prefix(job),
    }
    return {f"{first}_{name}": value for first in _SPELLINGS for name, value in said.items()}


def group_hostname(job: Job) -> str:
    """Return the name of everybody in the network group of a job that is in one."""
    return f"g{_group_digest(job)}-{_group(job)}"


def group_prefix(job: Job) -> str:
    """Return what an alias follows to be a name in the network group."""
    return f"a{_group_digest(job)}-"


def _group_digest(job: Job) -> str:
    # Interface 2.2: the same name means another group for another owner or resource group.
    identity = f"{job.owner_id}/{job.resource_group_id or ''}/{_group(job)}"
    return hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]


def _group(job: Job) -> str:
    assert job.spec.network is not None  # noqa: S101 - callers look for the group first.
    return job.spec.network.group
