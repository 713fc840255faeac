"""The card page of a repository: what it takes to show it, whoever looks."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from fastapi import Response
from markupsafe import Markup

from hublet.community.discussions import service as discussions
from hublet.core.database import Reader
from hublet.core.hub import Switch
from hublet.jobs import service as jobs
from hublet.repos import download_counter, gating
from hublet.repos import service as repos
from hublet.repos.browse import list_index
from hublet.repos.browse.overview import RepoOverview, get_overview, read_readme
from hublet.repos.browse.records import Revision
from hublet.repos.errors import ContentMissing
from hublet.repos.gate_form import gate_form_of
from hublet.repos.records import Repo, RepoAddress
from hublet.web.auth import PageVisit
from hublet.web.pages import render
from hublet.web.picture_sizes import PictureSource
from hublet.web.readme_cache import render_readme
from hublet.web.rendering.links import MarkdownPlace, place_in_repo
from hublet.web.repo_head import RepoHead, RepoTab, get_head
from hublet.web.repos.views import (
    CardSurroundings,
    GateBox,
    OpenItem,
    WeightCount,
    card_page,
    download_plot,
    open_items,
)

_THREADS_SHOWN = 5
_JOBS_SHOWN = 3
# Of downloads.
_DAYS = 30
_UNPROCESSABLE = 422


async def show_card(
    visit: PageVisit,
    address: RepoAddress,
    *,
    typed: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
) -> Response:
    """Show the card; after a form of its gate with problems, with what was typed."""
    database = visit.database
    async with database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.card)
        around = await _look_around(conn, visit, head)
    if around.gate is not None:
        prompt = await _prompt_of(visit, head, around.gate)
        gate = replace(around.gate, typed=typed or {}, problems=problems or {}, prompt=prompt)
        around = replace(around, gate=gate)
    overview = await get_overview(database, head.repo)
    page = card_page(
        head.repo,
        base_url=visit.hub.settings.base_url,
        readme=await _readme_of(visit, head, overview),
        overview=overview,
        around=around,
        weights=await _count_weights(visit, head, overview),
    )
    status = _UNPROCESSABLE if problems else 200
    return await render(
        visit, "repos/card.html", frame=head.frame, status=status, head=head, page=page
    )


async def _look_around(conn: Reader, visit: PageVisit, head: RepoHead) -> CardSurroundings:
    repo = head.repo
    by_day = await download_counter.history_of(conn, repo, days=_DAYS) if repo.downloads else []
    return CardSurroundings(
        open_items=await _list_open_items(conn, visit, head),
        downloads=download_plot(by_day) if by_day else None,
        gate=await _find_gate(conn, visit, head),
    )


async def _list_open_items(conn: Reader, visit: PageVisit, head: RepoHead) -> list[OpenItem]:
    has_threads = head.open_threads and not head.repo.discussions_disabled
    threads = (
        await discussions.list_open(conn, head.repo, limit=_THREADS_SHOWN) if has_threads else []
    )
    running = await jobs.list_running_with(conn, visit.caller, head.repo) if visit.caller else []
    return open_items(head.path, threads, running[:_JOBS_SHOWN], owner=head.repo.owner_name)


async def _find_gate(conn: Reader, visit: PageVisit, head: RepoHead) -> GateBox | None:
    """Return the gate before the repository; None where there is none."""
    repo = head.repo
    if repo.gated is None:
        return None
    request = await gating.find_request(conn, visit.caller, repo) if visit.caller else None
    waiting = await gating.count_pending(conn, repo) if head.may_manage else 0
    return GateBox(form=gate_form_of(repo.card), request=request, waiting=waiting)


async def _prompt_of(visit: PageVisit, head: RepoHead, gate: GateBox) -> Markup | None:
    """Return the conditions that the owner wrote, for who has not passed the gate."""
    if head.may_read or gate.form.prompt is None:
        return None
    from hublet.web.rendering import markdown  # noqa: PLC0415 - by the first page that needs it

    place = _place_of(visit, head)
    return await asyncio.to_thread(
        markdown.render_comment, gate.form.prompt, replace(place, anchor="gate", heading_level=3)
    )


async def _readme_of(
    visit: PageVisit, head: RepoHead, overview: RepoOverview | None
) -> Markup | None:
    if overview is None or overview.readme is None:
        return None
    readme = overview.readme
    return await render_readme(
        _place_of(visit, head),
        readme.oid,
        lambda: read_readme(visit.database, head.repo, readme),
        # The gate of a gated repository guards its pictures, not its card.
        PictureSource(
            database=visit.database, revision=await _revision_of(visit, head.repo, overview)
        )
        if head.may_read
        else None,
    )


async def _revision_of(visit: PageVisit, repo: Repo, overview: RepoOverview) -> Revision:
    folder = await repos.open_folder(visit.database, repo.id)
    return Revision(repo=repo, commit=overview.commit.id, folder=folder)


def _place_of(visit: PageVisit, head: RepoHead) -> MarkdownPlace:
    return place_in_repo(
        head.path,
        hub=visit.settings.base_url,
        remote_images=visit.hub.is_on(Switch.remote_images),
    )


async def _count_weights(
    visit: PageVisit, head: RepoHead, overview: RepoOverview | None
) -> WeightCount | None:
    """Count the parameters of a model. The gate guards them too."""
    if overview is None or not overview.weights or not head.may_read:
        return None
    try:
        by_dtype = await list_index.count_parameters(visit.database, head.repo, overview.weights)
    except ContentMissing:
        return None
    if not by_dtype:
        return None
    most_first = sorted(by_dtype.items(), key=lambda each: -each[1])
    return WeightCount(parameters=sum(by_dtype.values()), by_dtype=tuple(most_first))
