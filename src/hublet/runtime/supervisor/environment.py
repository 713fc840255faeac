"""Environment of an attempt: its variables, and its names in a network group."""

import hashlib
from collections.abc import Mapping

from hublet.core.config.kinds import FlavorSize
from hublet.jobs.records import JobRecord, network_group_key
from hublet.runtime.records import GroupMembership

_GIB = 2**30
_MIB = 2**20
# Interface 2.2 has one spelling; jobs written for the public service read the other.
_PREFIXES = ("HUB", "HF")
# So few that the longest group and alias still fit into one label of DNS.
_DIGITS = 12


def environment_of(
    job: JobRecord, size: FlavorSize, *, secrets: Mapping[str, str], base_url: str
) -> dict[str, str]:
    """Return every variable of an attempt; a job cannot overwrite those of the hub itself."""
    # Clients inside a job speak to the hub that runs it, unless the job says otherwise.
    own = {"HF_ENDPOINT": base_url} | job.spec.environment | dict(secrets)
    return own | _hub_variables(job, size) | _network_variables(job)


def _hub_variables(job: JobRecord, size: FlavorSize) -> dict[str, str]:
    variables = {
        "JOB_ID": job.id,
        "ACCELERATOR": size.name if size.devices or size.gpus else "none",
        "CPU_CORES": f"{size.cores:g}",
        "MEMORY": memory_text(size.memory_bytes),
    }
    return variables if job.spec.space is None else variables | {"SPACE_ID": job.spec.space}


def memory_text(size: int) -> str:
    """Return `16Gi`, or mebibytes where it is no whole number of those."""
    return f"{size // _GIB}Gi" if size % _GIB == 0 else f"{size // _MIB}Mi"


def _network_variables(job: JobRecord) -> dict[str, str]:
    if job.spec.network is None:
        return {}
    variables = {
        "NETWORK_GROUP_HOSTNAME": group_hostname(job),
        "NETWORK_GROUP_PREFIX": group_prefix(job),
    }
    return {f"{prefix}_{name}": value for prefix in _PREFIXES for name, value in variables.items()}


def group_hostname(job: JobRecord) -> str:
    """Return the host name that stands for all jobs in the network group of a job."""
    return f"g{_group_digest(job)}-{_group_name(job)}"


def group_prefix(job: JobRecord) -> str:
    """Return the prefix that makes an alias a host name in the network group."""
    return f"a{_group_digest(job)}-"


def _group_digest(job: JobRecord) -> str:
    return hashlib.sha256(_group_key(job).encode()).hexdigest()[:_DIGITS]


def _group_key(job: JobRecord) -> str:
    key = network_group_key(job.spec.network, job.owner_id, job.resource_group_id)
    assert key is not None  # noqa: S101 - callers check for a group first.
    return key


def _group_name(job: JobRecord) -> str:
    assert job.spec.network is not None  # noqa: S101 - as above.
    return job.spec.network.group


def group_of(job: JobRecord) -> GroupMembership | None:
    """Return the network group of a job and the names that the job has there."""
    network = job.spec.network
    if network is None:
        return None
    aliases = (group_prefix(job) + alias for alias in dict.fromkeys(network.aliases))
    return GroupMembership(key=_group_key(job), names=(group_hostname(job), *aliases))
