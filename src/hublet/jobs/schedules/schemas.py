"""Schemas of scheduled jobs: client contract 3.1 and 3.3."""

from typing import Annotated

from pydantic import MISSING, Field, SerializeAsAny

from hublet.core.schema import Flag, Schema, Timestamp
from hublet.jobs.records import Arch, Flavor
from hublet.jobs.request_schemas import Expose, JobRequest, Labels, Volume
from hublet.jobs.schemas import JobOwner, TypedJobOwner

# Long enough for every minute of an hour, each by its number.
Schedule = Annotated[str, Field(min_length=1, max_length=256, examples=["@daily", "0 9 * * 1"])]


class CreateScheduledJob(Schema):
    jobSpec: JobRequest
    # Five fields in UTC, or @annually, @yearly, @monthly, @weekly, @daily, @midnight, @hourly.
    schedule: Schedule
    # Whether a run may start while the one before goes on.
    concurrency: Flag = False
    suspend: Flag = False


class UpdateSchedule(Schema):
    schedule: Schedule


class JobSpec(Schema):
    """What each run asks for."""

    spaceId: str | MISSING = MISSING
    dockerImage: str | MISSING = MISSING
    command: list[str] | MISSING = MISSING
    arguments: list[str] | MISSING = MISSING
    environment: dict[str, str]
    # Names only.
    secrets: dict[str, None] | MISSING = MISSING
    flavor: Flavor
    arch: Arch | MISSING = MISSING
    # Seconds that one attempt may take.
    timeout: int
    # How often it is tried again at most.
    retry: int
    # The labels, each as `name=value`, or as `name` when its value is empty.
    tags: list[str]
    volumes: list[Volume] | MISSING = MISSING
    expose: Expose | MISSING = MISSING
    resourceGroupId: str | MISSING = MISSING


class LastJob(Schema):
    id: str
    at: Timestamp


class LastSkip(Schema):
    """A time at which no job began, and why."""

    at: Timestamp
    reason: str


class ScheduledJobStatus(Schema):
    lastJob: LastJob | None
    lastSkip: LastSkip | MISSING = MISSING
    # Null while it is suspended.
    nextJobRunAt: Timestamp | None


class ScheduledJob(Schema):
    id: str
    owner: JobOwner
    jobSpec: JobSpec
    createdAt: Timestamp
    schedule: str
    suspend: bool
    concurrency: bool
    status: ScheduledJobStatus


class PublicClientJobSpec(JobSpec):
    labels: Labels


class PublicClientScheduledJob(ScheduledJob):
    """What the public clients cannot do without; no one else gets it (decision 0028)."""

    # Nothing can be assigned to a frozen record, so narrower types are safe.
    owner: TypedJobOwner  # pyright: ignore[reportIncompatibleVariableOverride]
    jobSpec: PublicClientJobSpec  # pyright: ignore[reportIncompatibleVariableOverride]


ScheduledJobResponse = SerializeAsAny[ScheduledJob]
