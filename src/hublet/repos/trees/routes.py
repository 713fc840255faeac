"""HTTP for what lies in a revision."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from hublet.core.http.paging import LINKED
from hublet.core.http.routers import Router
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED
from hublet.repos.git.trees import Entry
from hublet.repos.trees import service
from hublet.repos.trees.auth import (
    IN_REVISION,
    REVISION,
    AskedPlace,
    AskedRevision,
    CommitPage,
    Place,
    TreePage,
)
from hublet.repos.trees.positions import read_count, write_position
from hublet.repos.trees.records import Listed, Revision
from hublet.repos.trees.schemas import Commit, PathsInfo, TreeEntry, TreeSize

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)

_PATHS = {"schema": PathsInfo.model_json_schema()}
_TAKES_PATHS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-www-form-urlencoded": _PATHS, "application/json": _PATHS},
    }
}


@router.get("/tree" + IN_REVISION, responses=LINKED)
async def list_repo_tree(
    place: AskedPlace, page: TreePage, *, recursive: bool = False, expand: bool = False
) -> list[TreeEntry]:
    """List the files and folders of a revision, or of a folder in it.

    The path is the revision and, behind it, the folder; slashes within a revision are `%2F`.
    All pages show the commit that the first one showed.
    """
    here = place.behind(page)
    found = await service.list_entries(
        here.at, here.path, recursive=recursive, after=here.after, limit=page.reach
    )
    shown = page.cut(found, position=lambda entry: write_position(here.at.commit, entry.path))
    return await _told(here.at, shown, expand=expand)


async def _asked_paths(request: Request) -> PathsInfo:
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
    at: AskedRevision, asked: Annotated[PathsInfo, Depends(_asked_paths)]
) -> list[TreeEntry]:
    """Get what lies at these paths; those where nothing lies are left out."""
    found = await service.find_entries(at, asked.paths)
    return await _told(at, found, expand=asked.expand)


async def _told(at: Revision, entries: Sequence[Entry], *, expand: bool) -> list[TreeEntry]:
    listed = [Listed(entry=entry) for entry in entries]
    if expand:
        listed = await service.with_last_commits(at, entries)
    return [TreeEntry.of(each, expand=expand) for each in listed]


@router.get("/treesize" + IN_REVISION)
async def get_tree_size(place: AskedPlace) -> TreeSize:
    """Get how many bytes the files of a revision, or of a folder in it, have together."""
    return TreeSize(path=place.path, size=await service.size_of(place.at, place.path))


@router.get("/commits" + REVISION, responses=LINKED)
async def list_repo_commits(
    at: AskedRevision,
    page: CommitPage,
    expand: Annotated[list[str] | None, Query(alias="expand[]")] = None,
) -> list[Commit]:
    """List a revision's commits, newest first.

    With `expand[]=formatted` titles and messages come a second time, safe to put into a page.
    """
    here = Place(at=at, path="").behind(page)
    skip = read_count(here.after)
    found = await service.list_commits(here.at, skip=skip, limit=page.reach)
    position = write_position(here.at.commit, str(skip + page.limit))
    shown = page.cut(found, position=lambda _: position)
    return [Commit.of(commit, formatted="formatted" in (expand or [])) for commit in shown]
