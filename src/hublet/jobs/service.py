"""Rules of jobs: creation, changes, cancellation, deletion, and the transition of a stage."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from hublet.accounts.errors import RoleNeeded
from hublet.accounts.records import Role
from hublet.core.clock import from_micros, micros, now
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Switch
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.core.sealing import KeyRing
from hublet.events import JobEnded
from hublet.jobs import list_store, requests, store
from hublet.jobs.access import (
    JobAccess,
    check_may_run,
    filter_for,
    get_access,
    get_space,
    role_in_group,
)
from hublet.jobs.errors import (
    JobGoesOn,
    JobIsDeleted,
    JobIsOver,
    JobNotFound,
    NamespaceNotFound,
    NewJobsSwitchedOff,
    SecretsGone,
)
from hublet.jobs.records import (
    DUE_JOBS,
    JOBS,
    Availability,
    Initiator,
    InitiatorType,
    JobHistory,
    JobRecord,
    Spec,
    Stage,
)
from hublet.jobs.request_schemas import Expose, JobRequest, or_none
from hublet.jobs.requests import check_commits, request_from
from hublet.jobs.stages import StageChange, Trigger, next_stage
from hublet.repos.records import Repo, RepoType
from hublet.tokens.delegations import delegation_of
from hublet.tokens.records import Caller

QUEUED = "queued"
# Of an owner with more, the oldest are not looked at.
_MOST_RUNNING_SEARCHED = 200
REMOVE_FOLDER = "jobs.remove-folder"
TIDY_LOG = "jobs.tidy-log"


def seal_secrets(keys: KeyRing, owner: str, secrets: Mapping[str, str]) -> bytes | None:
    """Seal the secrets of a job or a scheduled job, which its id is; None when there are none."""
    if not secrets:
        return None
    return keys.seal(msgspec.json.encode(dict(secrets)), context=_sealing_context(owner))


def unseal_secrets(keys: KeyRing, owner: str, sealed: bytes | None) -> dict[str, str]:
    if sealed is None:
        return {}
    opened = keys.open(sealed, context=_sealing_context(owner))
    return msgspec.json.decode(opened, type=dict[str, str])


def _sealing_context(owner: str) -> str:
    return f"jobs.secrets:{owner}"


async def list_running_with(conn: Reader, caller: Caller, repo: Repo) -> list[JobRecord]:
    """Return the jobs of a repository's owner that use it now, as far as the caller may see them."""
    try:
        access = await get_access(conn, caller, repo.owner_name)
    except NamespaceNotFound:
        return []
    running = filter_for(access, stages=(Stage.scheduling, Stage.running))
    jobs = await list_store.list_of(conn, running, before="", limit=_MOST_RUNNING_SEARCHED)
    return [job for job in jobs if _uses(job.spec, repo)]


def _uses(spec: Spec, repo: Repo) -> bool:
    names = {(RepoType(mount.type), mount.source.casefold()) for mount in spec.mounts}
    if spec.space is not None:
        names.add((RepoType.space, spec.space.casefold()))
    return (repo.type, repo.full_name.casefold()) in names


async def get(conn: Reader, access: JobAccess, job_id: str) -> JobRecord:
    job = await store.find(conn, job_id, owner_id=access.owner.id)
    if job is None or await role_in_group(conn, access, job.resource_group_id) is None:
        raise JobNotFound(job_id)
    return job


async def get_history(conn: Reader, job: JobRecord) -> JobHistory:
    """Return the attempts of a job, and each stage and message that it had."""
    attempts = await store.list_attempts(conn, job.id)
    return JobHistory(attempts=tuple(attempts), events=tuple(await store.list_events(conn, job.id)))


async def may_change(conn: Reader, access: JobAccess, job: JobRecord) -> bool:
    """Tell whether the caller may cancel, duplicate, label and delete a job."""
    role = await role_in_group(conn, access, job.resource_group_id)
    return job.stage is not Stage.deleted and access.may_change(job.creator_id, role)


async def get_to_change(conn: Reader, access: JobAccess, job_id: str) -> JobRecord:
    """Return a job that the caller may cancel, duplicate, label and delete."""
    job = await get(conn, access, job_id)
    role = await role_in_group(conn, access, job.resource_group_id)
    if not access.may_change(job.creator_id, role):
        raise RoleNeeded(Role.write, access.owner.name)
    if job.stage is Stage.deleted:
        raise JobIsDeleted(job_id)
    return job


async def list_changeable(conn: Reader, access: JobAccess, jobs: Iterable[JobRecord]) -> set[str]:
    """Return the ids of those jobs that the caller may cancel, duplicate, label and delete."""
    roles: dict[str | None, Role | None] = {}
    changeable = set[str]()
    for job in jobs:
        if job.resource_group_id not in roles:
            role = await role_in_group(conn, access, job.resource_group_id)
            roles[job.resource_group_id] = role
        if job.stage is not Stage.deleted and access.may_change(
            job.creator_id, roles[job.resource_group_id]
        ):
            changeable.add(job.id)
    return changeable


async def find_by_key(conn: Reader, key: str) -> JobRecord | None:
    """Return the job that was made under a key."""
    return await store.find_by_key(conn, key)


async def find_source(conn: Reader, job_id: str, *, owner_id: str) -> JobRecord | None:
    """Return a job of this owner that can be started again."""
    job = await store.find(conn, job_id, owner_id=owner_id)
    return None if job is None or job.stage is Stage.deleted else job


async def check(conn: Reader, access: JobAccess, request: JobRequest) -> Spec:
    """Return the spec of a request, or refuse it with the reason."""
    requests.check_request(request, conn.hub.settings)
    await check_may_run(conn, access, or_none(request.resourceGroupId))
    if space := or_none(request.spaceId):
        await get_space(conn, access.caller, space)
    mounts = await requests.resolve_mounts(conn, access.caller, or_none(request.volumes) or ())
    return requests.spec_of(request, mounts)


async def prepare(
    database: Database, availability: Availability, access: JobAccess, request: JobRequest
) -> None:
    """Refuse a job that nothing here would run, or whose commits do not exist; for `start`.

    No transaction may be open.
    """
    is_in_group = or_none(request.network) is not None
    await availability.check(or_none(request.dockerImage), is_in_group=is_in_group)
    await check_commits(database, access.caller, or_none(request.volumes) or ())


async def prepare_copy(
    database: Database, availability: Availability, access: JobAccess, job_id: str
) -> None:
    """Refuse to run a job once more that nothing here would run any more; for `duplicate`."""
    async with database.read() as conn:
        source = await get_to_change(conn, access, job_id)
    await prepare(database, availability, access, request_from(source, with_volumes=True))


async def start(
    conn: Connection, access: JobAccess, request: JobRequest, *, secrets_from: str | None = None
) -> JobRecord:
    """Start a job by hand.

    Secrets without a value are those of the job `secrets_from`, which the caller started too.
    """
    return await create(
        conn,
        access=access,
        initiator=Initiator(type=InitiatorType.user, id=access.caller.user_id),
        request=request,
        secrets=await _secrets_to_keep(conn, access, secrets_from, request),
    )


def may_keep_secrets(access: JobAccess, source: JobRecord) -> bool:
    """Tell whether a changed job may have the secrets of this one.

    What a job prints can be its secrets: only who typed them in may run something else with them.
    Copies, and what a schedule or webhook starts, may have those of somebody else.
    """
    typed_by = Initiator(type=InitiatorType.user, id=access.caller.user_id)
    return bool(source.secret_names) and source.initiator == typed_by


async def _secrets_to_keep(
    conn: Reader, access: JobAccess, source_id: str | None, request: JobRequest
) -> dict[str, str]:
    """Return the secrets that the request names without a value; the others are its own."""
    names = [name for name, value in requests.secrets_of(request).items() if not value]
    if source_id is None or not names:
        return {}
    source = await get_to_change(conn, access, source_id)
    if not may_keep_secrets(access, source):
        raise SecretsGone(source_id)
    kept = await secrets_of(conn, source)
    return {name: kept[name] for name in names if name in kept}


async def create(  # noqa: PLR0913 - the one way to create a job; each is named.
    conn: Connection,
    *,
    access: JobAccess,
    initiator: Initiator,
    request: JobRequest,
    key: str | None = None,
    extra_environment: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> JobRecord:
    """Add a job to the queue; the caller of the access is its creator.

    `secrets` come over those of the request. The same key never makes a second job: the first
    is returned. Volumes that name a commit by its id need `requests.check_commits` before.
    """
    if key is not None and (first := await store.find_by_key(conn, key)) is not None:
        return first
    if not conn.hub.is_on(Switch.new_jobs):
        raise NewJobsSwitchedOff
    spec = await check(conn, access, request)
    secrets = requests.secrets_of(request) | dict(secrets or {})
    job = JobRecord(
        id=new_object_id(),
        owner_id=access.owner.id,
        creator_id=access.caller.user_id,
        delegation=delegation_of(access.caller),
        resource_group_id=or_none(request.resourceGroupId),
        initiator=initiator,
        spec=replace(spec, environment=spec.environment | dict(extra_environment or {})),
        labels=requests.labels_of(request),
        expose=requests.ports_of(or_none(request.expose)),
        secret_names=tuple(secrets),
        stage=Stage.scheduling,
        message=QUEUED,
        created_at=now(),
    )
    sealed = seal_secrets(conn.hub.keys, job.id, secrets)
    if not await store.add(conn, job, sealed=sealed, key=key):
        return await _get_first(conn, key)
    conn.wake(JOBS)
    conn.wake(DUE_JOBS)
    return job


async def _get_first(conn: Reader, key: str | None) -> JobRecord:
    """Return the job of a key that another request has just used."""
    first = None if key is None else await store.find_by_key(conn, key)
    assert first is not None  # noqa: S101 - jobs are never removed while their key is in use.
    return first


async def duplicate(conn: Connection, access: JobAccess, job_id: str) -> JobRecord:
    """Start a copy of a job, with its secrets."""
    source = await get_to_change(conn, access, job_id)
    return await create(
        conn,
        access=access,
        initiator=Initiator(type=InitiatorType.duplicated_job, id=source.id),
        request=request_from(source, with_volumes=True),
        secrets=await secrets_of(conn, source),
    )


async def secrets_of(conn: Reader, job: JobRecord) -> dict[str, str]:
    """Unseal the secrets of a job; SecretsGone when it had some and they were dropped."""
    sealed = await store.find_sealed(conn, job.id)
    if sealed is None and job.secret_names:
        raise SecretsGone(job.id)
    return unseal_secrets(conn.hub.keys, job.id, sealed)


async def cancel(conn: Connection, access: JobAccess, job_id: str) -> JobRecord:
    """Request the cancellation of a job; one that is over stays as it is."""
    job = await get_to_change(conn, access, job_id)
    if await store.request_cancel(conn, job.id):
        conn.wake(JOBS)
        conn.wake(DUE_JOBS)
    return await get(conn, access, job_id)


async def set_labels(
    conn: Connection, access: JobAccess, job_id: str, labels: Mapping[str, str]
) -> JobRecord:
    job = await get_to_change(conn, access, job_id)
    await store.set_labels(conn, job, labels)
    return replace(job, labels=dict(labels))


async def set_expose(conn: Connection, access: JobAccess, job_id: str, expose: Expose) -> JobRecord:
    job = await get_to_change(conn, access, job_id)
    if job.stage.is_terminal:
        raise JobIsOver(job_id)
    ports = requests.ports_of(expose)
    await store.set_expose(conn, job.id, ports)
    conn.wake(JOBS)
    return replace(job, expose=ports)


async def delete(conn: Connection, access: JobAccess, job_id: str) -> None:
    """Delete the log and the files of a job; its record stays."""
    job = await get_to_change(conn, access, job_id)
    deletion = StageChange(trigger=Trigger.deleted, message=job.message)
    if await transition(conn, job, deletion) is None:
        raise JobGoesOn(job_id)
    await add_task(conn, NewTask(kind=REMOVE_FOLDER, body=json.dumps({"job_id": job.id})))


async def transition(conn: Connection, job: JobRecord, change: StageChange) -> JobRecord | None:
    """Bring a job to the stage its trigger leads to, with its attempt and its events.

    Returns None, and does nothing, when the job changed since it was read or the trigger leads
    nowhere from its stage.
    """
    stage = next_stage(job.stage, change.trigger)
    if stage is None or not await store.set_stage(conn, job, stage, change, at=micros()):
        return None
    await store.set_attempt_times(conn, job, change)
    changed = replace(job, stage=stage, message=change.message)
    if (stage, change.message) != (job.stage, job.message):
        await store.add_event(conn, changed)
    if stage.is_terminal and not job.stage.is_terminal:
        await publish(conn, _ended_event(changed))
    conn.wake(JOBS)
    if change.makes_due:
        conn.wake(DUE_JOBS)
    started_at = None if change.started_at is None else from_micros(change.started_at)
    return replace(
        changed,
        version=job.version + 1,
        failure_count=job.failure_count + change.is_failure,
        attempt=job.attempt + change.is_retry,
        started_at=job.started_at or started_at,
        running_micros=job.running_micros + change.ran,
    )


def _ended_event(job: JobRecord) -> JobEnded:
    return JobEnded(
        job_id=job.id,
        owner_id=job.owner_id,
        creator_id=job.creator_id,
        name=job.labels.get("name"),
        stage=job.stage,
        message=job.message,
    )
