"""HTTP for the pages of repositories: the card, likes and watches."""

from collections.abc import Awaitable, Callable

from fastapi import Response

from hublet.core.database import Connection
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.notifications import watches
from hublet.notifications.records import SubscriptionTarget, WatchType
from hublet.repos import likes
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import go_to, render
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of
from hublet.web.repos.pages import show_card

router = PageRouter()

# The block of `repo.html` with the buttons for likes and watches.
_BUTTONS = "acts"


@router.get(PAGE_REPO)
async def get_repo_page(visit: Visit, address: PageRepo) -> Response:
    return await show_card(visit, address)


@router.post(f"{PAGE_REPO}/like")
async def like_repo(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    async def like(conn: Connection, repo: Repo) -> None:
        await likes.like(conn, visit.person, repo)

    return await _change(visit, address, form, like)


@router.post(f"{PAGE_REPO}/unlike")
async def unlike_repo(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    async def unlike(conn: Connection, repo: Repo) -> None:
        await likes.unlike(conn, visit.person, repo)

    return await _change(visit, address, form, unlike)


@router.post(f"{PAGE_REPO}/watch")
async def watch_repo(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    async def watch(conn: Connection, repo: Repo) -> None:
        target = SubscriptionTarget(type=WatchType.repo, id=repo.id)
        await watches.watch(conn, user_id=visit.person.user_id, add=[target], delete=[])

    return await _change(visit, address, form, watch)


@router.post(f"{PAGE_REPO}/unwatch")
async def unwatch_repo(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    async def unwatch(conn: Connection, repo: Repo) -> None:
        target = SubscriptionTarget(type=WatchType.repo, id=repo.id)
        await watches.watch(conn, user_id=visit.person.user_id, add=[], delete=[target])

    return await _change(visit, address, form, unwatch)


async def _change(
    visit: PageVisit,
    address: RepoAddress,
    form: FormFields,
    change: Callable[[Connection, Repo], Awaitable[None]],
) -> Response:
    """Do what a button of the head says; a script gets the buttons back, others the page."""
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        await change(conn, repo)
    if visit.request.headers.get("fragment") == _BUTTONS:
        async with visit.database.read() as reading:
            head = await get_head(reading, visit, address, tab=RepoTab.card)
        return await render(visit, "repo.html", frame=head.frame, head=head)
    return go_to(visit, path_of(repo))
