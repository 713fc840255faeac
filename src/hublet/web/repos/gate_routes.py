"""HTTP for gates in the browser: people ask for access, owners decide."""

from typing import Annotated

from fastapi import Query, Response

from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import gating
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.errors import InvalidAccessRequest
from hublet.repos.gate_form import gate_form_of, read_answers
from hublet.repos.records import AccessStatus, Right
from hublet.web.auth import SignedInVisit
from hublet.web.pages import go_to, render
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of
from hublet.web.repos.pages import show_card

router = PageRouter()

_REQUESTS = f"{PAGE_REPO}/settings/access-requests"
_PAGE = 50
_MAX_REASON = 200
_TOASTS = {
    AccessStatus.accepted: "You have access now.",
    AccessStatus.pending: "Your request is with the owner, who will decide.",
    AccessStatus.rejected: "The owner rejected your request.",
}


@router.post(f"{PAGE_REPO}/request-access")
async def request_access(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    status: AccessStatus | None = None
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.person, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        answers, problems = read_answers(gate_form_of(repo.card), form)
        if not problems:
            status = await gating.request_access(conn, visit.person, repo, dict(answers))
    if status is None:
        return await show_card(visit, address, typed=form, problems=problems)
    return go_to(visit, path_of(repo), toast=_TOASTS[status])


@router.post(f"{PAGE_REPO}/withdraw-request")
async def withdraw_request(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.person, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        await gating.cancel(conn, visit.person, repo)
    return go_to(visit, path_of(repo), toast="Your request is withdrawn.")


@router.get(_REQUESTS)
async def get_access_requests_page(
    visit: SignedInVisit,
    address: PageRepo,
    status: AccessStatus = AccessStatus.pending,
    after: Annotated[str, Query(max_length=24)] = "",
) -> Response:
    """Show who asked to read a gated repository, oldest first."""
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        found = await gating.list_requests(conn, head.repo, status, after=after, limit=_PAGE + 1)
    shown, rest = found[:_PAGE], found[_PAGE:]
    return await render(
        visit,
        "repos/access_requests.html",
        frame=head.frame,
        head=head,
        requests=shown,
        chosen=status,
        statuses=list(AccessStatus),
        next_after=shown[-1].request.id if rest else None,
    )


@router.post(f"{_REQUESTS}/decide")
async def decide_access_request(
    visit: SignedInVisit, address: PageRepo, form: FormFields
) -> Response:
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.person, address, Right.manage)
        visit.check(form, f"{PURPOSE} {repo.id}")
        status, reason = _decision_of(form)
        request = await gating.get_request(
            conn, repo, user=None, request_id=form.get("request_id", "")
        )
        await gating.decide(conn, visit.person, repo, request, status=status, reason=reason)
    list_path = f"{path_of(repo)}/settings/access-requests?status={request.status}"
    return go_to(visit, list_path, toast=f"The request is {status}.")


def _decision_of(form: FormFields) -> tuple[AccessStatus, str | None]:
    if form.get("status") not in {each.value for each in AccessStatus}:
        raise InvalidAccessRequest("status must be pending, accepted or rejected.")
    status, reason = AccessStatus(form["status"]), form.get("reason", "").strip()
    if len(reason) > _MAX_REASON:
        raise InvalidAccessRequest(f"reason has at most {_MAX_REASON} characters.")
    return status, reason if reason and status is AccessStatus.rejected else None
