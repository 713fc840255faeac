"""Schemas of jobs in responses: interface 2.2, and what the public clients get beyond it."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import MISSING, Field, SerializeAsAny

from hublet.accounts.records import Owner
from hublet.core.schema import Schema, Timestamp
from hublet.jobs.records import (
    Arch,
    Flavor,
    InitiatorType,
    Stage,
    StageEvent,
    VolumeType,
)
from hublet.jobs.request_schemas import Labels, Ports
from hublet.tokens.records import Caller


class JobOwner(Schema):
    id: str
    name: str


class TypedJobOwner(JobOwner):
    type: Literal["user", "org"]


class JobPermission(StrEnum):
    read = "read"
    write = "write"


class JobAuthorization(Schema):
    """Whose jobs the caller has access to, and who the caller is."""

    namespace: JobOwner
    user: JobOwner

    @classmethod
    def of(cls, owner: Owner, caller: Caller) -> Self:
        return cls(
            namespace=JobOwner(id=owner.id, name=owner.name),
            user=JobOwner(id=caller.user_id, name=caller.user_name),
        )


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
    # The labels, each as `name=value`, or as `name` when its value is empty.
    tags: list[str]
    resourceGroupId: str | MISSING = MISSING
    # How often it is tried again at most.
    retry: int
    startedAt: Timestamp | MISSING = MISSING
    finishedAt: Timestamp | MISSING = MISSING
    durations: JobDurations
    volumes: list[MountedVolume] | MISSING = MISSING
    expose: ExposedPorts | MISSING = MISSING
    network: JobNetwork | MISSING = MISSING


class PublicClientJob(Job):
    """What the public clients cannot do without; no one else gets it (decision 0028)."""

    # Nothing can be assigned to a frozen record, so a narrower type is safe.
    owner: TypedJobOwner  # pyright: ignore[reportIncompatibleVariableOverride]
    labels: Labels
    initiator: JobInitiator


# The description shows the record of the interface; the public clients get all of theirs.
JobResponse = SerializeAsAny[Job]


class JobCount(Schema):
    count: int


class JobEvent(Schema):
    """How far a job was at a moment."""

    stage: Stage
    message: str | None
    attempt: int
    timestamp: Timestamp

    @classmethod
    def of(cls, event: StageEvent) -> "JobEvent":
        return cls(
            stage=event.stage,
            message=event.message,
            attempt=event.attempt,
            timestamp=event.at,
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
