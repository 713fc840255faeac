"""Jobs that webhooks start: from the webhook's own spec, or as a copy of a job of its owner."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hublet.accounts.records import Owner
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.jobs import service
from hublet.jobs.access import get_access, get_delegated_access
from hublet.jobs.errors import SourceNotFound
from hublet.jobs.records import Initiator, InitiatorType
from hublet.jobs.request_schemas import JobRequest, or_none
from hublet.jobs.requests import REQUEST_ADAPTER, check_commits, request_from
from hublet.tokens.delegations import Delegation, delegation_of
from hublet.tokens.records import Caller

# The variables that the owner of a webhook sees in its jobs; the others may be private to the
# repository, or large, and are stored like secrets.
_VISIBLE = frozenset({"WEBHOOK_ID", "WEBHOOK_REPO_ID", "WEBHOOK_REPO_TYPE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStart:
    """The job that a delivery starts: one of `job`, in wire names, and `source_id` is set."""

    webhook_id: str
    owner_id: str
    delegation: Delegation
    # The delivery: the same one never starts a second job.
    key: str
    job: Mapping[str, Any] | None = field(default=None, repr=False)
    source_id: str | None = None
    environment: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)


async def delegate(
    conn: Reader,
    caller: Caller,
    owner: Owner,
    *,
    job: Mapping[str, Any] | None,
    source_id: str | None,
) -> Delegation:
    """Return what a caller grants to a webhook; refuse a job that the caller may not run now."""
    access = await get_access(conn, caller, owner.name)
    request = await _request(conn, owner.id, job=job, source_id=source_id)
    await service.check(conn, access, request)
    return delegation_of(caller)


async def start(database: Database, order: WebhookStart) -> str:
    """Start the job of a delivery, or find the one that it started; return its id.

    The rights are those that were delegated to the webhook, as far as its delegate still has them.
    Refusals are HubErrors.
    """
    async with database.read() as conn:
        if (first := await service.find_by_key(conn, order.key)) is not None:
            return first.id
        access = await get_delegated_access(conn, order.delegation, order.owner_id)
        request = await _request(conn, order.owner_id, job=order.job, source_id=order.source_id)
    await check_commits(database, access.caller, or_none(request.volumes) or ())
    added = dict(order.environment)
    visible = {name: added.pop(name) for name in _VISIBLE & added.keys()}
    async with database.transaction() as conn:
        job = await service.create(
            conn,
            access=access,
            initiator=Initiator(type=InitiatorType.webhook, id=order.webhook_id),
            request=request,
            key=order.key,
            extra_environment=visible,
            # Last, so that no secret called WEBHOOK_PAYLOAD replaces the payload.
            secrets={**order.secrets, **added},
        )
    return job.id


async def _request(
    conn: Reader, owner_id: str, *, job: Mapping[str, Any] | None, source_id: str | None
) -> JobRequest:
    """Return the request; interface 6.1: a copy has neither the secrets nor the volumes."""
    if job is not None:
        # A webhook may name both; then it is the space that runs.
        without_image = {name: value for name, value in job.items() if name != "dockerImage"}
        return REQUEST_ADAPTER.validate_python(without_image if job.get("spaceId") else dict(job))
    source = await service.find_source(conn, source_id or "", owner_id=owner_id)
    if source is None:
        raise SourceNotFound(source_id or "")
    return request_from(source, with_volumes=False)
