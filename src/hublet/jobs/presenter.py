"""Presenter of jobs: a record and the names that belong to it become a response."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.database import Reader
from hublet.jobs import store
from hublet.jobs.access import JobAccess
from hublet.jobs.addresses import port_addresses, ssh_address
from hublet.jobs.records import JobDetails, JobRecord, Mount, NetworkGroup, Ports, Stage
from hublet.jobs.schemas import Job, PublicClientJob


async def render(conn: Reader, access: JobAccess, job: JobRecord) -> Job:
    [rendered] = await render_all(conn, access, [job])
    return rendered


async def render_all(conn: Reader, access: JobAccess, jobs: Sequence[JobRecord]) -> list[Job]:
    details = await store.find_details(conn, [job.id for job in jobs])
    settings = conn.hub.settings
    return [_render(job, access, details[job.id], settings) for job in jobs]


def _render(job: JobRecord, access: JobAccess, details: JobDetails, settings: Settings) -> Job:
    fields = _fields(job, details, settings) | {"owner": owner_fields(access)}
    if not access.for_public_client:
        return Job.model_validate(fields)
    fields |= {"labels": job.labels, "initiator": _initiator(job, details)}
    return PublicClientJob.model_validate(fields)


def owner_fields(access: JobAccess) -> dict[str, Any]:
    """Return the owner of a job or a scheduled job, as the caller is shown it."""
    owner = access.owner
    fields = {"id": owner.id, "name": owner.name}
    return fields | {"type": owner.type} if access.for_public_client else fields


def tags_from(labels: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in labels.items()]


def _fields(job: JobRecord, details: JobDetails, settings: Settings) -> dict[str, Any]:
    """Return what everybody is shown of a job; of its secrets only the names."""
    spec = job.spec
    fields: dict[str, Any] = {
        "id": job.id,
        "createdAt": job.created_at,
        "spaceId": spec.space,
        "dockerImage": spec.image,
        "timeout": spec.timeout_seconds or settings.jobs.timeout_seconds,
        "environment": spec.environment,
        "secrets": dict.fromkeys(job.secret_names) or None,
        "command": None if spec.command is None else list(spec.command),
        "arguments": None if spec.arguments is None else list(spec.arguments),
        "arch": spec.arch,
        "flavor": spec.flavor,
        "status": _status(job, settings),
        "createdBy": {"id": job.creator_id, "name": details.creator_name},
        "tags": tags_from(job.labels),
        "resourceGroupId": job.resource_group_id,
        "retry": spec.attempts - 1,
        "startedAt": job.started_at,
        "finishedAt": job.finished_at,
        "durations": _durations(job, details),
        "volumes": [_volume(mount) for mount in spec.mounts] or None,
        "expose": _expose(job.expose),
        "network": _network(spec.network),
    }
    return _without_none(fields)


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _status(job: JobRecord, settings: Settings) -> dict[str, Any]:
    return {
        "stage": job.stage,
        "message": job.message,
        "failureCount": job.failure_count,
        **_without_none(
            {
                "cancelReason": job.cancel_reason,
                "exposeUrls": port_addresses(job, settings) or None,
                "sshUrl": ssh_address(job, settings),
            }
        ),
    }


def _durations(job: JobRecord, details: JobDetails) -> dict[str, float]:
    """Return how long the job waited, ran and took; what has not ended counts until now."""
    end = job.finished_at or now()
    running = job.running_micros / 1e6
    if job.stage is Stage.running and details.attempt_started_at is not None:
        running += _seconds(details.attempt_started_at, end)
    return {
        "schedulingSecs": _seconds(job.created_at, job.started_at or end),
        "runningSecs": round(running, 3),
        "totalSecs": _seconds(job.created_at, end),
    }


def _seconds(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds()), 3)


def _volume(mount: Mount) -> dict[str, Any]:
    return _without_none(
        {
            "type": mount.type,
            "source": mount.source,
            "mountPath": mount.mount_path,
            "revision": mount.revision,
            "readOnly": bool(mount.read_only),
            "path": mount.path,
        }
    )


def _expose(expose: Ports | None) -> dict[str, Any] | None:
    if expose is None:
        return None
    return {"ports": list(expose.ports), "portsPublic": list(expose.public)}


def _network(network: NetworkGroup | None) -> dict[str, Any] | None:
    if network is None:
        return None
    return {"group": network.group, "aliases": list(network.aliases)}


def _initiator(job: JobRecord, details: JobDetails) -> dict[str, Any]:
    fields = {"type": job.initiator.type, "id": job.initiator.id}
    is_creator = job.initiator.id == job.creator_id
    return fields | ({"name": details.creator_name} if is_creator else {})
