"""Schemas of scheduled jobs: client contract 3.1 and 3.3."""

from typing import Annotated, Any, Self

from pydantic import MISSING, Field

from hublet.accounts.records import Owner
from hublet.core.config import Settings
from hublet.core.schema import Flag, Schema, Timestamp
from hublet.jobs.records import Arch, Flavor
from hublet.jobs.request_schemas import Expose, JobRequest, Labels, Volume, or_none
from hublet.jobs.schedules import records
from hublet.jobs.schemas import JobOwner

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
    labels: Labels
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

    @classmethod
    def of(cls, scheduled: records.ScheduledJobRecord, owner: Owner, settings: Settings) -> Self:
        """Render a scheduled job; of its secrets only the names."""
        return cls.model_validate(
            {
                "id": scheduled.id,
                "owner": {"id": owner.id, "name": owner.name, "type": owner.type},
                "jobSpec": _spec(scheduled, settings),
                "createdAt": scheduled.created_at,
                "schedule": scheduled.schedule,
                "suspend": scheduled.suspended,
                "concurrency": scheduled.concurrency,
                "status": _status(scheduled),
            }
        )


def _spec(scheduled: records.ScheduledJobRecord, settings: Settings) -> dict[str, Any]:
    request = scheduled.request
    fields: dict[str, Any] = {
        "spaceId": or_none(request.spaceId),
        "dockerImage": or_none(request.dockerImage),
        "command": or_none(request.command),
        "arguments": or_none(request.arguments),
        "environment": request.environment,
        "secrets": dict.fromkeys(scheduled.secret_names) or None,
        "flavor": request.flavor,
        "arch": or_none(request.arch),
        "timeout": request.timeoutSeconds or settings.jobs.timeout_seconds,
        "retry": request.attempts - 1,
        "labels": or_none(request.labels) or {},
        "volumes": or_none(request.volumes),
        "expose": or_none(request.expose),
        "resourceGroupId": or_none(request.resourceGroupId),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _status(scheduled: records.ScheduledJobRecord) -> dict[str, Any]:
    run, skip = scheduled.last_run, scheduled.last_skip
    fields: dict[str, Any] = {
        "lastJob": run and {"id": run.job_id, "at": run.at},
        "nextJobRunAt": None if scheduled.suspended else scheduled.next_run_at,
    }
    return fields | ({"lastSkip": {"at": skip.at, "reason": skip.reason}} if skip else {})
