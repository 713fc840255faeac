"""HTTP routes for the audit log of an organization, page by page and as an export."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from hublet.accounts.organizations import audit_store, service
from hublet.accounts.organizations.schemas import AuditEvent, AuditLine
from hublet.accounts.records import AuditEntry, AuditFilter, Organization
from hublet.core.clock import to_micros
from hublet.core.database import Database
from hublet.core.http import Db, ReadConn, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Moment
from hublet.tokens.auth import AccountOwner, caller_of

# That an export has, the newest ones.
MOST_EXPORTED = 100_000
_BATCH = 1000
_LINES = "application/x-ndjson"

audit_router = Router(prefix="/api/organizations/{name}/audit-log", tags=["orgs"])


async def _audit_filter(
    action: Annotated[
        str, Query(description="This action, as in `member.add`, or all of a kind, as in `member`.")
    ] = "",
    actor: Annotated[str, Query(description="Done by the user of this name.")] = "",
    search: Annotated[
        str, Query(description="A part of the target's name or of the details, in any case.")
    ] = "",
    since: Annotated[Moment | None, Query(description="From this moment on.")] = None,
    until: Annotated[Moment | None, Query(description="Before this moment.")] = None,
) -> AuditFilter:
    everything = AuditFilter()
    return AuditFilter(
        action=action,
        actor=actor,
        search=search,
        since=to_micros(since) if since else everything.since,
        until=to_micros(until) if until else everything.until,
    )


@audit_router.get("", responses=PAGED_RESPONSES)
async def read_audit_log(
    conn: ReadConn,
    caller: AccountOwner,
    name: str,
    audit_filter: Annotated[AuditFilter, Depends(_audit_filter)],
    page: PageQuery,
) -> list[AuditLine]:
    """Read what was changed in an organization and by whom, newest first, page by page."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    lines = await audit_store.list_of(
        conn, organization.id, audit_filter, before=page.after, limit=page.reach
    )
    return [AuditLine.of(line) for line in page.cut(lines, position=lambda line: line.id)]


_EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The lines, newest first: one a line, or an array for who accepts JSON alone.",
        "content": {
            _LINES: {},
            "application/json": {
                "schema": {"type": "array", "items": {"type": "object", "required": ["_id"]}}
            },
        },
    }
}


@audit_router.get("/export", response_class=Response, responses=_EXPORT_RESPONSES)
async def export_audit_log(
    request: Request,
    database: Db,
    caller: AccountOwner,
    name: str,
    q: Annotated[
        str,
        Query(
            max_length=500,
            description="Fields and words, as in `author:ada ip:192.0.2.1 type:repo.create engine`.",
        ),
    ] = "",
) -> Response:
    """Export the newest 100,000 lines of an organization's audit log, newest first.

    It comes as JSON, one object a line (NDJSON), or as one array when `Accept` names
    `application/json` and nothing else.
    """
    async with database.read() as conn:
        organization = await service.get_administered(conn, name, user_id=caller.user_id)
    batches = _batches(request, database, organization, audit_store.parse_query(q))
    base_url = database.hub.settings.base_url
    headers = {"Cache-Control": "no-store"}
    if request.headers.get("accept", "").partition(";")[0].strip() == "application/json":
        body = _write_array(batches, base_url)
        return StreamingResponse(body, media_type="application/json", headers=headers)
    file = f'attachment; filename="{organization.name}-audit-log.jsonl"'
    headers["Content-Disposition"] = file
    return StreamingResponse(_write_lines(batches, base_url), media_type=_LINES, headers=headers)


async def _batches(
    request: Request, database: Database, organization: Organization, audit_filter: AuditFilter
) -> AsyncIterator[list[AuditEntry]]:
    before, count = "", 0
    while count < MOST_EXPORTED:
        exchange_of(request).known_caller = None
        caller = await caller_of(request)
        async with database.read() as conn:
            # Who is no administrator any more gets no more lines.
            await service.get_administered(conn, organization.name, user_id=caller.user_id)
            lines = await audit_store.list_of(
                conn, organization.id, audit_filter, before=before, limit=_BATCH
            )
        if lines:
            yield lines
        if len(lines) < _BATCH:
            return
        before, count = lines[-1].id, count + len(lines)


async def _write_lines(
    batches: AsyncIterator[list[AuditEntry]], base_url: str
) -> AsyncIterator[str]:
    async for lines in batches:
        yield "".join(f"{_text(line, base_url)}\n" for line in lines)


async def _write_array(
    batches: AsyncIterator[list[AuditEntry]], base_url: str
) -> AsyncIterator[str]:
    mark = "["
    async for lines in batches:
        yield mark + ",".join(_text(line, base_url) for line in lines)
        mark = ","
    yield "[]" if mark == "[" else "]"


def _text(line: AuditEntry, base_url: str) -> str:
    return AuditEvent.of(line, base_url=base_url).model_dump_json(by_alias=True)
