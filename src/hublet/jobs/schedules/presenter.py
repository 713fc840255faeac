"""Presenter of scheduled jobs: a record becomes a response."""

from typing import Any

from hublet.core.config import Settings
from hublet.jobs.access import JobAccess
from hublet.jobs.presenter import owner_fields, tags_from
from hublet.jobs.request_schemas import or_none
from hublet.jobs.schedules.records import ScheduledJobRecord
from hublet.jobs.schedules.schemas import PublicClientScheduledJob, ScheduledJob


def render_scheduled(
    scheduled: ScheduledJobRecord, access: JobAccess, settings: Settings
) -> ScheduledJob:
    spec = _spec(scheduled, settings)
    fields = {
        "id": scheduled.id,
        "owner": owner_fields(access),
        "jobSpec": spec,
        "createdAt": scheduled.created_at,
        "schedule": scheduled.schedule,
        "suspend": scheduled.suspended,
        "concurrency": scheduled.concurrency,
        "status": _status(scheduled),
    }
    if not access.for_public_client:
        return ScheduledJob.model_validate(fields)
    fields["jobSpec"] = spec | {"labels": or_none(scheduled.request.labels) or {}}
    return PublicClientScheduledJob.model_validate(fields)


def _spec(scheduled: ScheduledJobRecord, settings: Settings) -> dict[str, Any]:
    """Return what each run asks for; of its secrets only the names."""
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
        "tags": tags_from(or_none(request.labels) or {}),
        "volumes": or_none(request.volumes),
        "expose": or_none(request.expose),
        "resourceGroupId": or_none(request.resourceGroupId),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _status(scheduled: ScheduledJobRecord) -> dict[str, Any]:
    run, skip = scheduled.last_run, scheduled.last_skip
    fields: dict[str, Any] = {
        "lastJob": run and {"id": run.job_id, "at": run.at},
        "nextJobRunAt": None if scheduled.suspended else scheduled.next_run_at,
    }
    return fields | ({"lastSkip": {"at": skip.at, "reason": skip.reason}} if skip else {})
