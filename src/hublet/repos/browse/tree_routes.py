"""HTTP for what lies in a revision: trees, paths and commits."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from hublet.core.http.paging import PAGED_RESPONSES
from hublet.core.http.routers import Router
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED
from hublet.repos.browse import revisions
from hublet.repos.browse.auth import (
    IN_REVISION,
    REVISION,
    CommitPage,
    RequestedPath,
    RequestedRevision,
    RevisionPath,
    TreePage,
)
from hublet.repos.browse.records import EntryWithCommit, Revision
from hublet.repos.browse.revisions import read_commit_count, write_tree_cursor
from hublet.repos.browse.schemas import Commit, PathsInfo, TreeEntry, TreeSize
from hublet.repos.git.trees import GitEntry

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)

_PATHS = {"schema": PathsInfo.model_json_schema()}
_TAKES_PATHS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-www-form-urlencoded": _PATHS, "application/json": _PATHS},
    }
}


@router.get("/tree" + IN_REVISION, responses=PAGED_RESPONSES)
async def list_repo_tree(
    place: RequestedPath, page: TreePage, *, recursive: bool = False, expand: bool = False
) -> list[TreeEntry]:
    """List the files and folders of a revision, or of a folder in it.

    The path is the revision and, behind it, the folder; slashes within a revision are `%2F`.
    All pages show the commit that the first one showed.
    """
    here = place.behind(page)
    found = await revisions.list_entries(
        here.at, here.path, recursive=recursive, after=here.after, limit=page.reach
    )
    shown = page.cut(found, position=lambda entry: write_tree_cursor(here.at.commit, entry.path))
    return await _render_entries(here.at, shown, expand=expand)


async def _requested_paths(request: Request) -> PathsInfo:
    # The public client sends a form; JSON says the same.
    if request.headers.get("content-type", "").startswith("application/json"):
        data: Any = None
        try:
            data = await request.json()
        except ValueError:
            raise RequestValidationError([{"type": "json_invalid", "loc": ("body",)}]) from None
    else:
        form = await request.form()
        data = {**form, "paths": form.getlist("paths")}
    try:
        return PathsInfo.model_validate(data)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(found) from None


@router.post("/paths-info" + REVISION, openapi_extra=_TAKES_PATHS)
async def get_paths_info(
    at: RequestedRevision, asked: Annotated[PathsInfo, Depends(_requested_paths)]
) -> list[TreeEntry]:
    """Get what lies at these paths; those where nothing lies are left out."""
    found = await revisions.find_entries(at, asked.paths)
    return await _render_entries(at, found, expand=asked.expand)


async def _render_entries(
    at: Revision, entries: Sequence[GitEntry], *, expand: bool
) -> list[TreeEntry]:
    listed = [EntryWithCommit(entry=entry) for entry in entries]
    if expand:
        listed = await revisions.with_last_commits(at, entries)
    return [TreeEntry.of(each, expand=expand) for each in listed]


@router.get("/treesize" + IN_REVISION)
async def get_tree_size(place: RequestedPath) -> TreeSize:
    """Get how many bytes the files of a revision, or of a folder in it, have together."""
    return TreeSize(path=place.path, size=await revisions.size_of(place.at, place.path))


@router.get("/commits" + REVISION, responses=PAGED_RESPONSES)
async def list_repo_commits(
    at: RequestedRevision,
    page: CommitPage,
    expand: Annotated[list[str] | None, Query(alias="expand[]")] = None,
) -> list[Commit]:
    """List a revision's commits, newest first.

    With `expand[]=formatted` titles and messages come a second time, safe to put into a page.
    """
    here = RevisionPath(at=at, path="").behind(page)
    skip = read_commit_count(here.after)
    found = await revisions.list_commits(here.at, skip=skip, limit=page.reach)
    position = write_tree_cursor(here.at.commit, str(skip + page.limit))
    shown = page.cut(found, position=lambda _: position)
    return [Commit.of(commit, formatted="formatted" in (expand or [])) for commit in shown]
