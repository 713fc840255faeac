"""HTTP for the rows of a dataset: the viewer with statistics of columns, and the SQL console."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Query, Response

from hublet.core import spreadsheets
from hublet.core.clock import monotonic
from hublet.core.database import Connection
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter, plural
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.sql import saved_queries
from hublet.sql.saved_queries import MAX_SQL
from hublet.sql.schemas import SaveQuery, UpdateQuery
from hublet.sql.service import ResultFormat
from hublet.sql.views import open_dataset
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, go_to, read_as, render
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, path_of
from hublet.web.repos.dataset_pages import (
    FORMATS,
    MAIN_BRANCH,
    QueryOutcome,
    engine_of,
    holder_of,
    load_console,
    load_view,
    open_head,
    revision_of,
    run,
    run_as,
    tables_of,
)

router = PageRouter()

_CONSOLE = f"{PAGE_REPO}/sql-console"
_Name = Annotated[str, Query(max_length=300)]


@router.get(f"{PAGE_REPO}/viewer")
async def get_viewer_page(
    visit: Visit,
    address: PageRepo,
    view: _Name = "",
    revision: _Name = MAIN_BRANCH,
    *,
    statistics: bool = False,
) -> Response:
    """Show the first rows of a split; statistics of its columns come after them."""
    head = await open_head(visit, address, RepoTab.viewer)
    if not head.may_read:
        return await _show_gate(visit, head)
    wants_statistics = statistics or visit.request.headers.get("fragment") == "statistics"
    page, problem = None, ""
    try:
        page = await load_view(visit, head, view, revision, with_statistics=wants_statistics)
    except HubError as error:
        if view or revision != MAIN_BRANCH:
            raise
        problem = error.message
    return await render(
        visit, "repos/viewer.html", frame=head.frame, head=head, page=page, problem=problem
    )


@router.get(_CONSOLE)
async def get_console_page(
    visit: Visit,
    address: PageRepo,
    *,
    sql: Annotated[str, Query(max_length=MAX_SQL)] = "",
    config: _Name = "",
    revision: _Name = MAIN_BRANCH,
) -> Response:
    form = {"sql": sql, "config": config, "revision": revision}
    return await _show_console(visit, address, form)


@router.get(f"{_CONSOLE}/{{query}}")
async def get_saved_query_page(
    visit: Visit, address: PageRepo, query: str, revision: _Name = MAIN_BRANCH
) -> Response:
    return await _show_console(visit, address, {"saved": query, "revision": revision})


@router.post(_CONSOLE)
async def run_query(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Run a query and show its first rows; a script gets the result alone."""
    repo = await _check(visit, address, form)
    started = monotonic()
    try:
        rows = await run(visit, repo, form)
    except HubError as error:
        return await _show_console(visit, address, form, QueryOutcome(problem=error))
    status = f"{plural(len(rows.rows), 'row')} in {monotonic() - started:.2f} s"
    return await _show_console(visit, address, form, QueryOutcome(rows=rows, status=status))


@router.post(f"{_CONSOLE}/cancel")
async def cancel_query(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    repo = await _check(visit, address, form)
    await engine_of(visit).cancel(form.get("id", ""), holder_of(visit))
    return go_to(visit, f"{path_of(repo)}/sql-console")


@router.post(f"{_CONSOLE}/download")
async def download_result(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Run a query and send its result as a file."""
    repo = await _check(visit, address, form)
    format_ = form.get("format", "csv")
    try:
        if format_ not in FORMATS:
            raise InvalidRequest(f"format must be one of {', '.join(FORMATS)}.")
        if format_ == "arrow":
            _, body = await run_as(visit, repo, form, ResultFormat.arrow)
            return _file(body, "application/vnd.apache.arrow.stream", "result.arrow")
        rows = await run(visit, repo, form)
    except HubError as error:
        return await _show_console(visit, address, form, QueryOutcome(problem=error))
    names = [column.name for column in rows.columns]
    if format_ == "json":
        listed = [dict(zip(names, row, strict=True)) for row in rows.rows]
        return _file(msgspec.json.encode(listed), "application/json", "result.json")
    text = spreadsheets.write_rows([names, *([_text(value) for value in row] for row in rows.rows)])
    return _file(text.encode(), spreadsheets.MEDIA_TYPE, "result.csv")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _file(body: bytes, media_type: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, media_type=media_type, headers=headers)


@router.post(f"{_CONSOLE}/save")
async def save_query_by_form(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Save the query under the name of who sends the form."""

    repo = await _check(visit, address, form)
    dataset = await open_dataset(visit.database, visit.caller, repo.address, revision_of(form))
    views = [
        {"key": each.view.key, "displayName": each.view.split.capitalize(), "viewName": each.name}
        for each in tables_of(dataset, form, None)
    ]

    async def save(conn: Connection, repo: Repo) -> str:
        body = read_as(
            SaveQuery,
            title=form.get("title", ""),
            sql=form.get("sql", ""),
            private="private" in form,
            views=views,
        )
        return (await saved_queries.save(conn, visit.person, repo, body.new())).slug

    return await _change(visit, address, form, save, toast="The query is saved.")


@router.post(f"{_CONSOLE}/{{query}}/update")
async def update_query_by_form(
    visit: SignedInVisit, address: PageRepo, query: str, form: FormFields
) -> Response:
    async def update(conn: Connection, repo: Repo) -> str:
        body = read_as(
            UpdateQuery,
            title=form.get("title", ""),
            sql=form.get("sql", ""),
            private="private" in form,
        )
        changed = await saved_queries.change(conn, visit.person, repo, query, body.change())
        return changed.slug

    return await _change(visit, address, form, update, toast="The query is changed.")


@router.post(f"{_CONSOLE}/{{query}}/delete")
async def delete_query_by_form(
    visit: SignedInVisit, address: PageRepo, query: str, form: FormFields
) -> Response:
    async def delete(conn: Connection, repo: Repo) -> str:
        await saved_queries.delete(conn, visit.person, repo, query)
        return ""

    return await _change(visit, address, form, delete, toast="The query is gone.")


async def _check(visit: PageVisit, address: RepoAddress, form: FormFields) -> Repo:
    """Return the dataset of a form that came from one of its own pages."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        return await saved_queries.get_dataset(conn, visit.caller, address)


async def _change(
    visit: PageVisit,
    address: RepoAddress,
    form: FormFields,
    change: Callable[[Connection, Repo], Awaitable[str]],
    *,
    toast: str,
) -> Response:
    """Do what a form says, and show the query whose slug comes back, or what was typed again."""
    repo = await _check(visit, address, form)
    try:
        async with visit.database.transaction() as conn:
            slug = await change(conn, repo)
    except REFUSALS as error:
        outcome = QueryOutcome(problem=error, in_save=True)
        return await _show_console(visit, address, form, outcome)
    path = f"{path_of(repo)}/sql-console"
    return go_to(visit, f"{path}/{slug}" if slug else path, toast=toast)


async def _show_console(
    visit: PageVisit,
    address: RepoAddress,
    form: Mapping[str, str],
    outcome: QueryOutcome | None = None,
) -> Response:
    """Show the console with the text of a form, or of a saved query, and what became of it."""
    outcome = outcome or QueryOutcome()
    head = await open_head(visit, address, RepoTab.console)
    if not head.may_read:
        return await _show_gate(visit, head)
    page = await load_console(visit, head, form, outcome)
    status = 200 if outcome.problem is None else max(outcome.problem.status, 400)
    return await render(
        visit, "repos/sql_console.html", frame=head.frame, status=status, head=head, page=page
    )


async def _show_gate(visit: PageVisit, head: RepoHead) -> Response:
    return await render(visit, "files/gated.html", frame=head.frame, head=head)
