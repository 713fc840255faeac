"""HTTP for the list of a repository's threads, and for the form that opens one."""

from typing import Annotated, Literal

from fastapi import Depends, Query, Response

from hublet.community.discussions import pull_requests, service
from hublet.community.discussions.records import DiscussionSort, NewDiscussion
from hublet.community.discussions.schemas import CreateDiscussion
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PageRepo
from hublet.repos.records import RepoAddress, Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, go_to, read_as, render, status_of
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of
from hublet.web.threads import content
from hublet.web.threads.auth import THREADS
from hublet.web.threads.forms import EMPTY, FormState, text_of
from hublet.web.threads.list_views import ListQuery, ListView, NewThreadView

_MOST_PAGES = 100_000

router = PageRouter(prefix=THREADS)

_Text = Annotated[str, Query(max_length=200)]


async def _query(
    status: Literal["open", "closed", "all"] = "open",
    kind: Annotated[Literal["all", "discussion", "pull_request"], Query(alias="type")] = "all",
    author: _Text = "",
    search: _Text = "",
    sort: DiscussionSort = DiscussionSort.created,
    p: Annotated[int, Query(ge=0, le=_MOST_PAGES)] = 0,
) -> ListQuery:
    return ListQuery(
        status=status, kind=kind, author=author.strip(), search=search.strip(), sort=sort, page=p
    )


@router.get("")
async def get_threads_page(
    visit: Visit, repo: PageRepo, query: Annotated[ListQuery, Depends(_query)]
) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, repo, tab=RepoTab.threads)
        page = await service.get_page(conn, visit.caller, repo, query.filters, number=query.page)
        may_open = not head.repo.discussions_disabled and await repos.may(
            conn, visit.caller, head.repo, Right.discuss
        )
    view = ListView(head=head, query=query, page=page, may_open=may_open)
    return await render(visit, "threads/list.html", frame=head.frame, head=head, view=view)


@router.get("/new")
async def get_new_thread_page(visit: SignedInVisit, repo: PageRepo) -> Response:
    return await _show_form(visit, repo, EMPTY)


@router.post("/new")
async def open_thread(visit: SignedInVisit, repo: PageRepo, form: FormFields) -> Response:
    """Open a discussion, or a pull request to which its author then pushes."""
    async with visit.database.read() as conn:
        path = path_of(found := await repos.get(conn, visit.caller, repo, Right.see))
    visit.check(form, f"{PURPOSE} {found.id}")
    text = text_of(form, "description")
    state = FormState(name="new", values={**form, "description": text})
    if "preview" in form:
        preview = await content.render_text(text, found, visit.hub)
        return await _show_form(
            visit, repo, FormState(name="new", values=state.values, preview=preview)
        )
    try:
        asked = read_as(CreateDiscussion, title=form.get("title", ""), description=text)
        new = NewDiscussion(title=asked.title, description=asked.description)
        open_ = pull_requests.open_draft if "draft" in form else service.open_discussion
        async with visit.database.transaction() as conn:
            discussion = await open_(conn, visit.person, repo, new)
    except REFUSALS as error:
        return await _show_form(visit, repo, state, error)
    return go_to(visit, f"{path}/discussions/{discussion.number}")


async def _show_form(
    visit: PageVisit, repo: RepoAddress, state: FormState, error: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, repo, tab=RepoTab.threads)
        if error is None:
            await repos.check(conn, visit.caller, head.repo, Right.discuss)
            service.check_enabled(head.repo)
    problem = None if error is None else error.message
    form = FormState(name=state.name, values=state.values, problem=problem, preview=state.preview)
    view = NewThreadView(head=head, form=form, base_url=visit.hub.settings.base_url)
    status = 200 if error is None else status_of(error)
    return await render(
        visit, "threads/new.html", frame=head.frame, status=status, head=head, view=view
    )
