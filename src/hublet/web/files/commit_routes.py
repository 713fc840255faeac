"""HTTP for the pages of commits: history, one commit, comparison of two revisions, blame."""

import asyncio
from typing import Any

from fastapi import Response

from hublet.core.pages import PageRouter
from hublet.core.paging import write_cursor
from hublet.repos.auth import ROOT_REPO, RootRepo
from hublet.repos.browse import comparisons, revisions
from hublet.repos.browse.auth import IN_REVISION, revision_and_path
from hublet.repos.browse.revisions import read_commit_count, write_tree_cursor
from hublet.repos.errors import EntryNotFound
from hublet.repos.git.diffs import CommitDiff
from hublet.repos.git.history import CommitInfo
from hublet.web.auth import PageVisit, Visit
from hublet.web.code_cache import CodeCache
from hublet.web.files import feeds
from hublet.web.files.auth import (
    FeedVisit,
    FilesVisit,
    RequestedFiles,
    open_files,
    render_gate,
)
from hublet.web.files.feed_routes import find_commits_feed
from hublet.web.files.links import FileLinks
from hublet.web.files.views import blame_rows, commit_line, days_of
from hublet.web.pages import render
from hublet.web.rendering.diffs import RenderedDiff, render_diff
from hublet.web.repo_head import RepoHead, RepoTab, get_head

router = PageRouter()

COMMITS_ON_A_PAGE = 50


@router.get(ROOT_REPO + "/commits" + IN_REVISION)
async def get_commits_page(
    visit: FeedVisit, address: RootRepo, rest: str, cursor: str = ""
) -> Response:
    name, path = revision_and_path(visit.request, rest)
    if not path and (feed := await find_commits_feed(visit, address, name)) is not None:
        return feed
    files = await open_files(visit, address, name, path, tab=RepoTab.commits)
    files, after = files.at_cursor(cursor)
    skip = read_commit_count(after)
    commits = await _list_commits(files, skip)
    on_page = commits[:COMMITS_ON_A_PAGE]
    return await render(
        visit,
        "files/commits.html",
        frame=files.head.frame,
        head=files.head,
        files=files,
        days=days_of(on_page),
        newer=_page(files, skip - COMMITS_ON_A_PAGE) if skip else None,
        older=_page(files, skip + COMMITS_ON_A_PAGE) if len(commits) > len(on_page) else None,
        feed=feeds.commits_address(files.links),
    )


async def _list_commits(files: FilesVisit, skip: int) -> list[CommitInfo]:
    limit = COMMITS_ON_A_PAGE + 1
    if not files.path:
        return await revisions.list_commits(files.revision, skip=skip, limit=limit)
    found = await revisions.list_path_commits(files.revision, files.path, skip=skip, limit=limit)
    if not found and not skip:
        raise EntryNotFound(files.path, commit=files.revision.commit)
    return found


def _page(files: FilesVisit, skip: int) -> str:
    address = files.links.commits(files.path)
    if skip <= 0:
        return address
    return f"{address}?cursor={write_cursor(write_tree_cursor(files.revision.commit, str(skip)))}"


@router.get(ROOT_REPO + "/commit/{sha}")
async def get_commit_page(visit: Visit, address: RootRepo, sha: str, file: str = "") -> Response:
    head = await _head(visit, address)
    found = await comparisons.get_commit(visit.database, visit.caller, address, sha, path=file)
    return await _render_diff_page(
        visit,
        "files/commit.html",
        head,
        found.diff,
        links=FileLinks(repo=head.path, revision=found.info.id),
        line=commit_line(found.info),
        page=f"{head.path}/commit/{found.info.id}",
        file=file,
    )


@router.get(ROOT_REPO + "/compare" + IN_REVISION)
async def get_compare_page(visit: Visit, address: RootRepo, rest: str, file: str = "") -> Response:
    # No name of a branch has two dots in a row.
    base, _, name = rest.rpartition("...")
    base = base or "main"
    head = await _head(visit, address)
    found = await comparisons.compare(visit.database, visit.caller, address, base, name, path=file)
    links = FileLinks(repo=head.path, revision=name)
    return await _render_diff_page(
        visit,
        "files/compare.html",
        head,
        found.diff,
        links=links,
        base=base,
        divergence=found.divergence,
        days=days_of(found.divergence.commits),
        page=links.compare(base),
        file=file,
    )


async def _head(visit: PageVisit, address: RootRepo) -> RepoHead:
    async with visit.database.read() as conn:
        return await get_head(conn, visit, address, tab=RepoTab.commits)


async def _render_diff_page(
    visit: PageVisit, template: str, head: RepoHead, diff: CommitDiff | None, **values: Any
) -> Response:
    rendered: RenderedDiff | None = None
    if diff is not None:
        cache = CodeCache.of(visit.hub.settings, head.repo.id)
        rendered = await asyncio.to_thread(render_diff, diff, highlighter=cache.highlight_side)
    return await render(visit, template, frame=head.frame, head=head, diff=rendered, **values)


@router.get(ROOT_REPO + "/blame" + IN_REVISION)
async def get_blame_page(files: RequestedFiles, address: RootRepo) -> Response:
    visit = files.visit
    if not files.head.may_read:
        return await render_gate(files)
    _, blame = await comparisons.blame(
        visit.database, visit.caller, address, files.name, files.path
    )
    cache = CodeCache.of(visit.hub.settings, files.revision.repo.id)
    lines = await asyncio.to_thread(cache.highlight, blame.text, files.path)
    return await render(
        visit,
        "files/blame.html",
        frame=files.head.frame,
        head=files.head,
        files=files,
        refusal=blame.refusal,
        rows=blame_rows(blame, lines),
    )
