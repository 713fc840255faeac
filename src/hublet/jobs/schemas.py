"""Schemas of jobs in responses: interface 2.2, with what the public client reads besides."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import MISSING, Field

from hublet.accounts.records import Owner
from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.schema import Schema, Timestamp
from hublet.jobs import addresses, records
from hublet.jobs.addresses import ssh_address
from hublet.jobs.records import (
    Arch,
    Flavor,
    InitiatorType,
    JobDetails,
    Stage,
    StageEvent,
    VolumeType,
)
from hublet.jobs.request_schemas import Labels, Ports


class JobOwner(Schema):
    id: str
    name: str
    # The public client cannot read an owner without it.
    type: Literal["user", "org"]


class JobCreator(Schema):
    id: str
    name: str


class JobInitiator(Schema):
    """What made the job start: a user, a schedule, a webhook, or the job it is a copy of."""

    type: InitiatorType
    id: str
    # Of a user.
    name: str | MISSING = MISSING


class JobStatus(Schema):
    stage: Stage
    message: str | None
    cancelReason: str | MISSING = MISSING
    failureCount: int
    # One for each of expose.ports, in the same order.
    exposeUrls: list[str] | MISSING = MISSING
    sshUrl: str | MISSING = MISSING


class JobDurations(Schema):
    schedulingSecs: float
    runningSecs: float
    totalSecs: float


class MountedVolume(Schema):
    type: VolumeType
    source: str
    mountPath: str
    revision: str | MISSING = MISSING
    readOnly: bool
    path: str | MISSING = MISSING


class ExposedPorts(Schema):
    ports: Ports
    portsPublic: Ports


class JobNetwork(Schema):
    group: str
    aliases: list[str]


class Job(Schema):
    id: str
    createdAt: Timestamp
    owner: JobOwner
    spaceId: str | MISSING = MISSING
    dockerImage: str | MISSING = MISSING
    # Seconds that one attempt may take.
    timeout: int
    environment: dict[str, str]
    # Names only.
    secrets: dict[str, None] | MISSING = MISSING
    command: list[str] | MISSING = MISSING
    arguments: list[str] | MISSING = MISSING
    arch: Arch | MISSING = MISSING
    flavor: Flavor
    status: JobStatus
    createdBy: JobCreator
    resourceGroupId: str | MISSING = MISSING
    # How often it is tried again at most.
    retry: int
    startedAt: Timestamp | MISSING = MISSING
    finishedAt: Timestamp | MISSING = MISSING
    durations: JobDurations
    volumes: list[MountedVolume] | MISSING = MISSING
    expose: ExposedPorts | MISSING = MISSING
    network: JobNetwork | MISSING = MISSING
    labels: Labels
    initiator: JobInitiator


class JobCount(Schema):
    count: int


class JobEvent(Schema):
    """How far a job was at a moment."""

    stage: Stage
    message: str | None
    attempt: int
    timestamp: Timestamp

    @classmethod
    def of(cls, happening: StageEvent) -> "JobEvent":
        return cls(
            stage=happening.stage,
            message=happening.message,
            attempt=happening.attempt,
            timestamp=happening.at,
        )


class UpdateLabels(Schema):
    """All labels of a job; those that it had and are not named go."""

    labels: Labels


class Accelerator(Schema):
    type: str
    model: Annotated[str, Field(examples=["T4"])]
    quantity: Annotated[str, Field(examples=["1"])]
    vram: str
    manufacturer: str


class Hardware(Schema):
    name: Flavor
    prettyName: str
    cpu: Annotated[str, Field(examples=["2 vCPU"])]
    ram: Annotated[str, Field(examples=["16 GB"])]
    # Only where the operator gave the flavor devices.
    accelerator: Accelerator | None
    unitCostMicroUSD: int
    unitCostUSD: float
    unitLabel: str


def render_record(
    job: records.JobRecord, owner: Owner, aside: JobDetails, settings: Settings
) -> Job:
    """Return a job as `Job` describes it; its secrets stay inside."""
    spec = job.spec
    shown: dict[str, Any] = {
        "id": job.id,
        "createdAt": job.created_at,
        "owner": {"id": owner.id, "name": owner.name, "type": owner.type},
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
        "createdBy": {"id": job.creator_id, "name": aside.creator_name},
        "resourceGroupId": job.resource_group_id,
        "retry": spec.attempts - 1,
        "startedAt": job.started_at,
        "finishedAt": job.finished_at,
        "durations": _durations(job, aside),
        "volumes": [_volume(mount) for mount in spec.mounts] or None,
        "expose": _expose(job.expose),
        "network": _network(spec.network),
        "labels": job.labels,
        "initiator": _initiator(job, aside),
    }
    return Job.model_validate(_without_none(shown))


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _status(job: records.JobRecord, settings: Settings) -> dict[str, Any]:
    return {
        "stage": job.stage,
        "message": job.message,
        "failureCount": job.failure_count,
        **_without_none(
            {
                "cancelReason": job.cancel_reason,
                "exposeUrls": addresses.port_addresses(job, settings) or None,
                "sshUrl": ssh_address(job, settings),
            }
        ),
    }


def _durations(job: records.JobRecord, aside: JobDetails) -> dict[str, float]:
    """What goes on is counted until now."""
    end = job.finished_at or now()
    running = job.running_micros / 1e6
    if job.stage is Stage.running and aside.attempt_started_at is not None:
        running += _seconds(aside.attempt_started_at, end)
    return {
        "schedulingSecs": _seconds(job.created_at, job.started_at or end),
        "runningSecs": round(running, 3),
        "totalSecs": _seconds(job.created_at, end),
    }


def _seconds(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds()), 3)


def _volume(mount: records.Mount) -> dict[str, Any]:
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


def _expose(expose: records.Ports | None) -> dict[str, Any] | None:
    if expose is None:
        return None
    return {"ports": list(expose.ports), "portsPublic": list(expose.public)}


def _network(network: records.NetworkGroup | None) -> dict[str, Any] | None:
    if network is None:
        return None
    return {"group": network.group, "aliases": list(network.aliases)}


def _initiator(job: records.JobRecord, aside: JobDetails) -> dict[str, Any]:
    shown = {"type": job.initiator.type, "id": job.initiator.id}
    is_creator = job.initiator.id == job.creator_id
    return shown | ({"name": aside.creator_name} if is_creator else {})
