"""HTTP for pull requests: commits, changed files, merge, and the editor for conflicts."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import Query, Response

from hublet.community.discussions import comparison, merge, pull_requests
from hublet.community.discussions.comparison import Sides
from hublet.core.errors import Conflict, HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PageRepo
from hublet.repos.records import RepoAddress, Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.code_cache import CodeCache
from hublet.web.pages import REFUSALS, render, status_of
from hublet.web.rendering.diffs import RenderedDiff, render_diff
from hublet.web.threads.auth import THREAD, Number
from hublet.web.threads.forms import FormState
from hublet.web.threads.pages import check_thread_form, finish, load_thread, show_refusal
from hublet.web.threads.views import (
    ConflictsView,
    SolutionForm,
    ThreadQuery,
    ThreadTab,
    ThreadView,
    read_solution,
)

router = PageRouter(prefix=THREAD)


async def _load_content(
    visit: PageVisit, address: RepoAddress, number: int, tab: ThreadTab
) -> ThreadView:
    """Read a pull request for somebody who may read the files that it changes."""
    view = await load_thread(visit, address, number, query=ThreadQuery(tab=tab))
    pull_requests.check_pull_request(view.discussion)
    async with visit.database.read() as conn:
        await repos.check(conn, visit.caller, view.head.repo, Right.read)
    return view


@router.get("/commits")
async def get_commits_page(visit: Visit, repo: PageRepo, num: Number) -> Response:
    view = await _load_content(visit, repo, num, ThreadTab.commits)
    folder = await repos.open_folder(visit.database, view.head.repo.id)
    commits = (
        await asyncio.to_thread(comparison.list_commits, folder, view.state.sides)
        if view.state
        else []
    )
    return await render(
        visit,
        "threads/commits.html",
        frame=view.head.frame,
        head=view.head,
        view=view,
        commits=commits,
    )


@router.get("/files")
async def get_files_page(
    visit: Visit, repo: PageRepo, num: Number, file: Annotated[str, Query(max_length=4096)] = ""
) -> Response:
    """Show what it changes: the first files at once, the others when they are opened."""
    view = await _load_content(visit, repo, num, ThreadTab.files)
    folder = await repos.open_folder(visit.database, view.head.repo.id)
    diff = None
    if view.state:
        cache = CodeCache.of(visit.hub.settings, view.head.repo.id)
        diff = await asyncio.to_thread(_render_files, folder, view.state.sides, file, cache)
    return await render(
        visit,
        "threads/files.html",
        frame=view.head.frame,
        head=view.head,
        view=view,
        diff=diff,
        file=file,
    )


def _render_files(folder: Path, sides: Sides, path: str, cache: CodeCache) -> RenderedDiff:
    diff = comparison.diff_files(folder, sides, path=path)
    return render_diff(diff, highlighter=cache.highlight_side)


@router.post("/merge")
async def merge_pull_request(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Merge the commit that the page showed; not what was pushed since."""
    await check_thread_form(visit, repo, num, form)
    try:
        await merge.merge_into_base(
            visit.database, visit.person, repo, num, comment=None, head=form.get("head") or None
        )
    except REFUSALS as error:
        return await show_refusal(visit, repo, num, FormState(name="thread"), error)
    return await finish(visit, repo, num, anchor="timeline")


@router.get("/conflicts")
async def get_conflicts_page(visit: SignedInVisit, repo: PageRepo, num: Number) -> Response:
    found = await merge.get_conflicts(visit.database, visit.person, repo, num)
    thread = await load_thread(visit, repo, num)
    return await _render_conflicts(
        visit, ConflictsView(thread=thread, sides=found.sides, files=found.files)
    )


@router.post("/conflicts")
async def solve_conflicts(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Save the edited files as a merge of the base into the pull request."""
    await check_thread_form(visit, repo, num, form)
    typed = read_solution(form)
    try:
        await merge.solve_conflicts(
            visit.database, visit.person, repo, num, typed.sides, typed.solution
        )
    except REFUSALS as error:
        return await _show_again(visit, repo, num, typed, error)
    return await finish(visit, repo, num, toast="The conflicts are solved.")


async def _show_again(
    visit: PageVisit, address: RepoAddress, number: int, typed: SolutionForm, error: HubError
) -> Response:
    """Show the editor with what was typed: in its fields, or beside them if a side has moved."""
    thread = await load_thread(visit, address, number)
    view = ConflictsView(thread=thread, sides=None, typed=typed, problem=error.message)
    try:
        found = await merge.get_conflicts(visit.database, visit.person, address, number)
    except Conflict:
        # It was closed or merged meanwhile.
        return await _render_conflicts(visit, view, status=422)
    view = replace(view, sides=found.sides, files=found.files)
    return await _render_conflicts(visit, view, status=status_of(error))


async def _render_conflicts(
    visit: PageVisit, view: ConflictsView, *, status: int = 200
) -> Response:
    head = view.thread.head
    return await render(
        visit,
        "threads/conflicts.html",
        frame=head.frame,
        status=status,
        head=head,
        view=view.thread,
        conflicts=view,
    )
