"""HTTP for gated repositories: requests for access, and the decisions about them."""

from typing import Annotated, Any

from fastapi import Body
from pydantic import MISSING
from starlette.responses import StreamingResponse

from hublet.core import spreadsheets
from hublet.core.database import Connection
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.repos import gating
from hublet.repos import service as repos
from hublet.repos.auth import (
    GIT_REPO,
    GIT_TAGS,
    MODEL_PAGE,
    MOVED,
    REPO_PAGE,
    ROOT_REPO,
    Downloader,
    GitRepo,
    ModelPage,
    RepoPage,
    RootRepo,
)
from hublet.repos.records import AccessStatus, RepoAddress, Right
from hublet.repos.schemas import (
    AccessFields,
    AccessRequest,
    AccessState,
    GrantAccess,
    HandleAccessRequest,
)
from hublet.tokens.auth import AccountOwner, AnyCaller

router = Router(tags=GIT_TAGS, responses=MOVED)

_Fields = Annotated[AccessFields | None, Body(description="What the page asks for, by name.")]


@router.post(f"{MODEL_PAGE}/ask-access")
async def ask_model_access(
    conn: Conn, caller: AccountOwner, address: ModelPage, fields: _Fields = None
) -> AccessState:
    """Ask to read a gated model; its owners get to know the caller's name and e-mail address.

    An automatic gate opens at once. Asking again changes nothing and tells how things stand.
    """
    return await _ask(conn, caller, address, fields)


@router.post(f"{REPO_PAGE}/ask-access")
async def ask_repo_access(
    conn: Conn, caller: AccountOwner, address: RepoPage, fields: _Fields = None
) -> AccessState:
    """Ask to read a gated dataset, space or kernel, as with a model."""
    return await _ask(conn, caller, address, fields)


async def _ask(
    conn: Connection, caller: AccountOwner, address: RepoAddress, fields: AccessFields | None
) -> AccessState:
    repo = await repos.get(conn, caller, address, Right.see)
    return AccessState(status=(await gating.request_access(conn, caller, repo, fields or {})).value)


@router.post(f"{GIT_REPO}/user-access-request/cancel")
async def cancel_access_request(conn: Conn, caller: AccountOwner, address: GitRepo) -> Done:
    """Withdraw the caller's own request while it is pending."""
    repo = await repos.get(conn, caller, address, Right.see)
    await gating.cancel(conn, caller, repo)
    return Done()


@router.post(f"{GIT_REPO}/user-access-request/handle")
async def handle_access_request(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: HandleAccessRequest
) -> Done:
    """Accept or reject a request to read a gated repository, or put it back to pending."""
    repo = await repos.get(conn, caller, address, Right.manage)
    user = None if body.user is MISSING else body.user
    request_id = None if body.requestId is MISSING else body.requestId
    request = await gating.get_request(conn, repo, user=user, request_id=request_id)
    status, reason = AccessStatus(body.status), body.rejectionReason
    await gating.decide(conn, caller, repo, request, status=status, reason=reason)
    return Done()


@router.post(f"{GIT_REPO}/user-access-request/grant")
async def grant_access(conn: Conn, caller: AnyCaller, address: GitRepo, body: GrantAccess) -> Done:
    """Let a user read a gated repository, whether they asked or not."""
    repo = await repos.get(conn, caller, address, Right.manage)
    await gating.grant(conn, caller, repo, body.user)
    return Done()


@router.get(f"{GIT_REPO}/user-access-request/{{status}}", responses=PAGED_RESPONSES)
async def list_access_requests(
    conn: ReadConn, caller: AnyCaller, address: GitRepo, status: AccessStatus, page: PageQuery
) -> list[AccessRequest]:
    """List who asked to read a gated repository, by what became of it, page by page."""
    repo = await repos.get(conn, caller, address, Right.manage)
    requests = await gating.list_requests(conn, repo, status, after=page.after, limit=page.reach)
    base_url = conn.hub.settings.base_url
    on_page = page.cut(requests, position=lambda each: each.request.id)
    return [AccessRequest.of(each, base_url=base_url) for each in on_page]


_REPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {spreadsheets.MEDIA_TYPE: {"schema": {"type": "string"}}},
        "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
    }
}


@router.get(f"{ROOT_REPO}/user-access-report", response_class=StreamingResponse, responses=_REPORT)
async def export_access_requests(
    database: Db, caller: Downloader, address: RootRepo
) -> StreamingResponse:
    """Export who asked to read a gated repository as CSV: one line for each, oldest first."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.manage)
        gating.check_gated(repo)
    file_name = f"{repo.owner_name}-{repo.name}-access-requests.csv"
    return StreamingResponse(
        gating.write_report(database, caller, address),
        media_type=spreadsheets.MEDIA_TYPE,
        headers={
            "Content-Disposition": f'attachment; filename="{file_name}"',
            "Cache-Control": "no-store",
        },
    )
