"""HTTP for the audit log of an organization."""

from typing import Annotated

from fastapi import Depends, Query
from pydantic import AwareDatetime

from hublet.accounts.audit import store
from hublet.accounts.audit.records import AuditFilter
from hublet.accounts.audit.schemas import AuditLine
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.clock import to_micros
from hublet.core.http import ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.tokens.auth import AccountOwner

router = Router(prefix="/api/organizations/{name}/audit-log", tags=["orgs"])


async def _filter(
    action: Annotated[str, Query(description="Exactly this action, as in `member.add`.")] = "",
    actor: Annotated[str, Query(description="Done by the user of this name.")] = "",
    since: Annotated[AwareDatetime | None, Query(description="From this moment on.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this moment.")] = None,
) -> AuditFilter:
    everything = AuditFilter()
    return AuditFilter(
        action=action,
        actor=actor,
        since=to_micros(since) if since else everything.since,
        until=to_micros(until) if until else everything.until,
    )


@router.get("", responses=LINKED)
async def read_audit_log(
    conn: ReadConn,
    caller: AccountOwner,
    name: str,
    asked: Annotated[AuditFilter, Depends(_filter)],
    page: AskedPage,
) -> list[AuditLine]:
    """Read what was changed in an organization and by whom, newest first, page by page."""
    organization = await organizations.get_as(conn, name, user_id=caller.user_id, needed=Role.admin)
    found = await store.list_of(conn, organization.id, asked, before=page.after, limit=page.reach)
    return [AuditLine.of(line) for line in page.cut(found, position=lambda line: line.id)]
