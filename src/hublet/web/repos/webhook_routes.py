"""HTTP for the webhooks that watch a repository: the viewer's own, and the organization's.

Each has a page of its own, where everything else is done with it (`web.webhooks`).
"""

from collections.abc import Sequence
from contextlib import suppress

from fastapi import Response

from hublet.accounts.errors import RoleNeeded
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import REFUSALS, go_to, render, status_of
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of
from hublet.web.webhook_forms import (
    WebhookFields,
    purpose_of,
    read_new,
    typed_fields,
    webhooks_path,
)
from hublet.webhooks import service as webhooks
from hublet.webhooks.auth import access_to_organization, access_to_own
from hublet.webhooks.records import WebhookAccess, WebhookRecord, WebhookState
from hublet.webhooks.schemas import MAX_SECRET

router = PageRouter()

_WEBHOOKS = f"{PAGE_REPO}/settings/webhooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchingWebhook:
    """A webhook in the list of a repository; its secret is not in it."""

    webhook: WebhookRecord
    # Whose webhook it is.
    owner: str
    # Its own page, and the token of the forms there.
    path: str
    form_token: str
    # Whether it watches this repository by its own name, and how much else it watches.
    is_direct: bool
    others: int

    @property
    def is_enabled(self) -> bool:
        return self.webhook.state is WebhookState.enabled


@router.get(_WEBHOOKS)
async def get_webhooks_page(visit: SignedInVisit, address: PageRepo) -> Response:
    return await _show(visit, address)


@router.post(_WEBHOOKS)
async def create_webhook(visit: FreshVisit, address: PageRepo, form: FormFields) -> Response:
    """Add a webhook that posts to a URL when something happens in this repository."""
    try:
        async with visit.database.transaction() as conn:
            repo = await repos.get(conn, visit.person, address, Right.manage)
            visit.check(form, f"{PURPOSE} {repo.id}")
            access = await _get_access(conn, visit, repo, owner=form.get("owner", ""))
            request = read_new(form, watched=[f"{repo.type}:{repo.full_name}"])
            await webhooks.create(conn, access, request)
    except REFUSALS as error:
        return await _show(visit, address, fields=typed_fields(form), problem=error)
    return go_to(visit, f"{path_of(repo)}/settings/webhooks", toast="The webhook is there.")


async def _get_access(conn: Reader, visit: PageVisit, repo: Repo, *, owner: str) -> WebhookAccess:
    """Return access to the webhooks of an owner: the viewer, or the repository's organization."""
    if owner == visit.person.user_name:
        return access_to_own(visit.request, visit.person)
    if repo.owner.is_organization and owner == repo.owner_name:
        return await access_to_organization(visit.request, conn, visit.person, owner)
    raise InvalidRequest("owner must be you, or the organization that the repository belongs to.")


async def _list_accesses(conn: Reader, visit: PageVisit, repo: Repo) -> list[WebhookAccess]:
    found = [access_to_own(visit.request, visit.person)]
    if repo.owner.is_organization:
        with suppress(RoleNeeded):
            found.append(await _get_access(conn, visit, repo, owner=repo.owner_name))
    return found


def _rows(
    visit: PageVisit, access: WebhookAccess, found: Sequence[WebhookRecord], repo: Repo
) -> list[WatchingWebhook]:
    return [
        WatchingWebhook(
            webhook=each,
            owner=access.owner.name,
            path=f"{webhooks_path(access.owner)}/{each.id}",
            form_token=visit.form_token(purpose_of(access.owner.name)),
            is_direct=any(watched.target == repo.id for watched in each.watched),
            others=sum(watched.target != repo.id for watched in each.watched),
        )
        for each in found
    ]


async def _show(
    visit: PageVisit,
    address: RepoAddress,
    *,
    fields: WebhookFields | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        accesses = await _list_accesses(conn, visit, head.repo)
        rows = [
            row
            for access in accesses
            for row in _rows(
                visit, access, await webhooks.list_watching(conn, access, head.repo), head.repo
            )
        ]
    return await render(
        visit,
        "repos/webhooks.html",
        frame=head.frame,
        status=200 if problem is None else status_of(problem),
        head=head,
        rows=rows,
        owners=[access.owner.name for access in accesses],
        fields=fields or WebhookFields(),
        max_secret=MAX_SECRET,
        problem=None if problem is None else problem.message,
    )
