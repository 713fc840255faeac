"""HTTP for the audit log of an organization, with its exports, and for the state of SCIM."""

import json
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated

from fastapi import Query, Request, Response
from starlette.responses import StreamingResponse

from hublet.accounts.organizations import audit_store
from hublet.accounts.organizations.schemas import AuditLine
from hublet.accounts.records import AuditEntry, AuditFilter, Organization
from hublet.core import spreadsheets
from hublet.core.clock import wire
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.scim import auth as scim_auth
from hublet.scim import groups_store as scim_groups
from hublet.scim.records import Directory, ListQuery
from hublet.scim.users import store as scim_users
from hublet.scim.users.roles import grant_of
from hublet.tokens.auth import actor_of
from hublet.web.auth import PageVisit, SignedInVisit
from hublet.web.organizations.audit_words import KINDS, WORDS, AuditQuery, sentence_of
from hublet.web.organizations.pages import (
    SETTINGS,
    get_administered,
    open_settings,
    render_settings,
)
from hublet.web.pages import next_page_url

router = PageRouter()

_LOG = f"{SETTINGS}/audit-log"
_PAGE_SIZE = 50
# Lines of an export that are read at a time.
_BATCH_SIZE = 500
_MOST_CHANGES = 20
_MOST_GROUPS = 100


_Text = Annotated[str, Query(max_length=200)]


def _query_of(request: Request) -> AuditQuery:
    given = {
        name: request.query_params.get(name, "").strip()[:200].replace("\0", "")
        for name in ("actor", "action", "since", "until", "search")
    }
    return AuditQuery(**given)


@router.get(_LOG)
async def get_audit_log_page(
    visit: SignedInVisit, organization: str, cursor: _Text = ""
) -> Response:
    """Show what was changed and by whom, newest first."""
    query = _query_of(visit.request)
    problem: HubError | None = None
    lines: list[AuditEntry] = []
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, organization, "audit-log")
        try:
            lines = await audit_store.list_of(
                conn,
                head.organization.id,
                query.to_filter(),
                before=read_cursor(cursor) if cursor else "",
                limit=_PAGE_SIZE + 1,
            )
        except InvalidRequest as error:
            problem = error
    page = lines[:_PAGE_SIZE]
    return await render_settings(
        visit,
        head,
        template="audit_log",
        lines=[(line, sentence_of(line)) for line in page],
        query=query,
        words=WORDS,
        kinds=KINDS,
        next_url=next_page_url(visit, write_cursor(page[-1].id))
        if len(lines) > len(page)
        else None,
        problem=problem,
    )


class ExportFormat(StrEnum):
    csv = "csv"
    jsonl = "jsonl"


_MEDIA_TYPES = {
    ExportFormat.csv: spreadsheets.MEDIA_TYPE,
    ExportFormat.jsonl: "application/x-ndjson",
}


@router.get(f"{_LOG}/export.{{format_}}")
async def export_audit_log(
    visit: SignedInVisit, organization: str, format_: ExportFormat
) -> Response:
    """Send all lines that the filters find as a file, piece by piece."""
    audit_filter = _query_of(visit.request).to_filter()
    async with visit.database.read() as conn:
        found = await get_administered(conn, visit, organization)
    write = _write_csv if format_ is ExportFormat.csv else _write_json_lines
    return StreamingResponse(
        write(_batches(visit, found, audit_filter)),
        media_type=_MEDIA_TYPES[format_],
        headers={
            "Content-Disposition": f'attachment; filename="{found.name}-audit-log.{format_}"',
            "Cache-Control": "no-store",
        },
    )


async def _batches(
    visit: PageVisit, organization: Organization, audit_filter: AuditFilter
) -> AsyncIterator[list[AuditEntry]]:
    before = ""
    while True:
        async with visit.database.read() as conn:
            # Who is no administrator any more gets no more lines.
            await get_administered(conn, visit, organization.name)
            lines = await audit_store.list_of(
                conn, organization.id, audit_filter, before=before, limit=_BATCH_SIZE
            )
        yield lines
        if len(lines) < _BATCH_SIZE:
            return
        before = lines[-1].id


async def _write_json_lines(batches: AsyncIterator[list[AuditEntry]]) -> AsyncIterator[str]:
    async for lines in batches:
        yield "".join(f"{AuditLine.of(line).model_dump_json()}\n" for line in lines)


_COLUMNS = ("id", "at", "actor", "action", "target", "sentence", "details", "address")


async def _write_csv(batches: AsyncIterator[list[AuditEntry]]) -> AsyncIterator[str]:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    async for lines in batches:
        yield spreadsheets.write_rows([*rows, *map(_csv_row, lines)])
        rows = []


def _csv_row(line: AuditEntry) -> tuple[str, ...]:
    return (
        line.id, wire(line.at), line.actor_name, line.action, line.target,
        f"{line.actor_name} {sentence_of(line)}", json.dumps(line.details), line.address or "",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryRow:
    """One of the two directories of an organization, as its page shows it."""

    managed: bool
    url: str
    users: int
    groups: int


@router.get(f"{SETTINGS}/scim")
async def get_scim_page(visit: SignedInVisit, organization: str) -> Response:
    """Show where an identity provider provisions, who does, and what it changed last."""
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, organization, "scim")
        found = head.organization
        directories = [
            Directory(
                organization=found, managed=managed, actor=actor_of(visit.request, visit.person)
            )
            for managed in (False, True)
        ]
        rows = [await _directory_row(conn, each) for each in directories]
        groups = [
            (group, directory.managed, grant_of(group.display_name, organization=found.name))
            for directory in directories
            for group in await scim_groups.list_of(
                conn, directory, ListQuery(limit=_MOST_GROUPS), with_members=True
            )
        ]
        changes = await _last_changes(conn, found)
    return await render_settings(
        visit,
        head,
        directories=rows,
        groups=groups,
        changes=[(line, sentence_of(line)) for line in changes],
    )


async def _directory_row(conn: Reader, directory: Directory) -> DirectoryRow:
    path = scim_auth.MANAGED if directory.managed else scim_auth.INVITED
    return DirectoryRow(
        managed=directory.managed,
        url=conn.hub.settings.base_url + path.format(name=directory.organization.name),
        users=await scim_users.count_of(conn, directory, ListQuery()),
        groups=await scim_groups.count_of(conn, directory, ListQuery()),
    )


async def _last_changes(conn: Reader, organization: Organization) -> list[AuditEntry]:
    found = [
        line
        for kind in ("scim-user", "scim-group")
        for line in await audit_store.list_of(
            conn, organization.id, AuditFilter(action=kind), limit=_MOST_CHANGES
        )
    ]
    return sorted(found, key=lambda line: line.id, reverse=True)[:_MOST_CHANGES]
