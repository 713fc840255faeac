"""Gated repositories: requests for access, and the decisions about them.

The routes check that the caller of a decision manages the repository.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.core.clock import now, wire
from hublet.core.database import Connection, Database, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.core.spreadsheets import write_rows
from hublet.events import AccessDecided, AccessRequested
from hublet.repos import gating_store
from hublet.repos import service as repos
from hublet.repos.errors import AccessRequestNotFound, AlreadyHasAccess, InvalidAccessRequest
from hublet.repos.records import (
    AccessStatus,
    Gated,
    GateRequest,
    GateRequester,
    Repo,
    RepoAddress,
    Right,
)
from hublet.tokens.records import Caller

_REPORT_COLUMNS = (
    "user",
    "fullname",
    "email",
    "status",
    "timestamp",
    "rejectionReason",
    "fields",
)
_REPORT_BATCH = 500


def check_gated(repo: Repo) -> None:
    if repo.gated is None:
        raise InvalidAccessRequest(f"{repo.full_name} is not gated.")


async def request_access(
    conn: Connection, caller: Caller, repo: Repo, fields: dict[str, Any]
) -> AccessStatus:
    """Request to read a repository; return the status of the request, also of an earlier one."""
    check_gated(repo)
    if await repos.may_user(conn, caller.user_id, repo, Right.read):
        raise AlreadyHasAccess(caller.user_name, repo.full_name)
    status = AccessStatus.accepted if repo.gated is Gated.auto else AccessStatus.pending
    request = _new_request(repo, user_id=caller.user_id, status=status, fields=fields)
    if await gating_store.add(conn, request):
        return await _publish_request(conn, repo, request)
    known = await gating_store.find(conn, repo.id, user_id=caller.user_id)
    if known is None:
        raise AccessRequestNotFound("request of yours any more", repo.full_name)
    # The gate may have become automatic while the request was waiting.
    opened = replace(known, status=status)
    if known.status is AccessStatus.pending is not status and await gating_store.decide(
        conn, known, opened
    ):
        return await _publish_request(conn, repo, opened)
    return known.status


def _new_request(
    repo: Repo,
    *,
    user_id: str,
    status: AccessStatus,
    fields: dict[str, Any] | None,
    decided_by: str | None = None,
) -> GateRequest:
    return GateRequest(
        id=new_object_id(),
        repo_id=repo.id,
        user_id=user_id,
        status=status,
        fields=fields,
        decided_by=decided_by,
        created_at=now(),
    )


async def _publish_request(conn: Connection, repo: Repo, request: GateRequest) -> AccessStatus:
    await publish(
        conn,
        AccessRequested(
            repo=repos.snapshot(repo),
            request_id=request.id,
            user_id=request.user_id,
            status=request.status,
        ),
    )
    return request.status


async def cancel(conn: Connection, caller: Caller, repo: Repo) -> None:
    """Withdraw the caller's own request, as long as nobody has decided about it."""
    if not await gating_store.remove_pending(conn, repo.id, user_id=caller.user_id):
        raise AccessRequestNotFound("pending request of yours", repo.full_name)


async def get_request(
    conn: Reader, repo: Repo, *, user: str | None, request_id: str | None
) -> GateRequest:
    """Return the request of a user, or the one of this id; exactly one of both is needed."""
    check_gated(repo)
    if (user is None) is (request_id is None):
        raise InvalidAccessRequest("Exactly one of user and requestId is needed.")
    if user is not None:
        requester = await _user(conn, user)
        request = await gating_store.find(conn, repo.id, user_id=requester.id)
    else:
        request = await gating_store.find_by_id(conn, repo.id, request_id=request_id or "")
    if request is None:
        raise AccessRequestNotFound("request of this user", repo.full_name)
    return request


async def find_request(conn: Reader, caller: Caller, repo: Repo) -> GateRequest | None:
    """Return the caller's own request."""
    return await gating_store.find(conn, repo.id, user_id=caller.user_id)


async def list_requests(
    conn: Reader, repo: Repo, status: AccessStatus, *, after: str, limit: int
) -> list[GateRequester]:
    """Return who asked, oldest first, behind the request of this id."""
    check_gated(repo)
    return await gating_store.list_of(conn, repo.id, status, after=after, limit=limit)


async def write_report(
    database: Database, caller: Caller | None, address: RepoAddress
) -> AsyncIterator[str]:
    """Yield who asked to read a repository and what became of it as lines of CSV, oldest first."""
    rows: list[tuple[str, ...]] = [_REPORT_COLUMNS]
    after = ""
    while True:
        async with database.read() as conn:
            # Who does not manage it any more gets no more lines.
            repo = await repos.get(conn, caller, address, Right.manage)
            check_gated(repo)
            found = await gating_store.list_of(
                conn, repo.id, None, after=after, limit=_REPORT_BATCH
            )
        yield write_rows([*rows, *map(_report_row, found)])
        if len(found) < _REPORT_BATCH:
            return
        rows, after = [], found[-1].request.id


def _report_row(requester: GateRequester) -> tuple[str, ...]:
    request = requester.request
    # Access that was granted without a request does not share the address.
    email = "" if request.fields is None else requester.email or ""
    return (
        requester.user.name, requester.user.fullname, email, request.status.value,
        wire(request.created_at), request.rejection_reason or "",
        json.dumps(request.fields or {}, ensure_ascii=False),
    )  # fmt: skip


async def count_pending(conn: Reader, repo: Repo) -> int:
    return await gating_store.count_of(conn, repo.id, AccessStatus.pending)


async def _user(conn: Reader, name: str) -> User:
    return await accounts.get_visible_user(conn, name, to_administrator=False)


async def decide(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    request: GateRequest,
    *,
    status: AccessStatus,
    reason: str | None = None,
) -> None:
    """Accept or reject a request, or put it back among the pending ones."""
    if reason is not None and status is not AccessStatus.rejected:
        raise InvalidAccessRequest("rejectionReason is only for the status rejected.")
    decided = replace(request, status=status, rejection_reason=reason, decided_by=caller.user_id)
    if request.status is status or not await gating_store.decide(conn, request, decided):
        raise AccessRequestNotFound(f"request that is not {status} already", repo.full_name)
    await _publish_decision(conn, caller, repo, decided)


async def grant(conn: Connection, caller: Caller, repo: Repo, user_name: str) -> None:
    """Grant access to a user, with or without a request."""
    check_gated(repo)
    user = await _user(conn, user_name)
    known = await gating_store.find(conn, repo.id, user_id=user.id)
    if known is not None and known.status is not AccessStatus.accepted:
        await decide(conn, caller, repo, known, status=AccessStatus.accepted)
        return
    granted = _new_request(
        repo,
        user_id=user.id,
        status=AccessStatus.accepted,
        fields=None,
        decided_by=caller.user_id,
    )
    has_access = await repos.may_user(conn, user.id, repo, Right.read)
    if has_access or not await gating_store.add(conn, granted):
        raise AlreadyHasAccess(user.name, repo.full_name)
    await _publish_decision(conn, caller, repo, granted)


async def _publish_decision(
    conn: Connection, caller: Caller, repo: Repo, request: GateRequest
) -> None:
    await publish(
        conn,
        AccessDecided(
            repo=repos.snapshot(repo),
            request_id=request.id,
            user_id=request.user_id,
            status=request.status,
            actor_id=caller.user_id,
        ),
    )
