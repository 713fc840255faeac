"""HTTP for browsing: information about repositories, lists, trees and history."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import JSONResponse, PlainTextResponse

from hublet.core.database import Database, Reader
from hublet.core.http import Db, MayBeOld, PublicReadConn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_REPOS, GIT_TAGS, MOVED, GitRepo
from hublet.repos.browse import (
    comparisons,
    information,
    lists,
    revisions,
    store,
    tag_lists,
    taxonomy,
)
from hublet.repos.browse.auth import (
    IN_REVISION,
    REVISION,
    CommitPage,
    ListPage,
    RequestedInformation,
    RequestedList,
    RequestedPath,
    RequestedRevision,
    RevisionPath,
    TreePage,
)
from hublet.repos.browse.lists import write_list_cursor, write_owner_list_cursor
from hublet.repos.browse.records import ListedTag, Revision
from hublet.repos.browse.revisions import read_commit_count, write_tree_cursor
from hublet.repos.browse.schemas import (
    Commit,
    DatasetTagType,
    ModelTagType,
    OwnRepo,
    PathsInfo,
    RepoInfo,
    SecurityStatus,
    TagInfo,
    TaskInfo,
    TaskModel,
    TreeEntry,
    TreeSize,
)
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import Right
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router(tags=GIT_TAGS, responses=MOVED)
lists_router = Router()
trees_router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)

_PATHS = {"schema": PathsInfo.model_json_schema()}
_TAKES_PATHS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-www-form-urlencoded": _PATHS, "application/json": _PATHS},
    }
}


@router.get(GIT_REPO, response_model=RepoInfo)
async def get_repo(
    database: Db,
    caller: MaybeCaller,
    address: GitRepo,
    options: RequestedInformation,
    may_be_old: MayBeOld,
) -> Response:
    """Tell what is known of a repository, with the files of its main branch."""
    info = await information.get_info(database, caller, address, options, may_be_old=may_be_old)
    return Response(info, media_type="application/json")


@router.get(f"{GIT_REPO}/revision/{{rev:revision}}", response_model=RepoInfo)
async def get_repo_revision(
    database: Db,
    caller: MaybeCaller,
    address: GitRepo,
    rev: str,
    options: RequestedInformation,
    may_be_old: MayBeOld,
) -> Response:
    """Tell what is known of a repository, with its files at a branch, a tag or a commit."""
    info = await information.get_info(
        database, caller, address, replace(options, revision=rev), may_be_old=may_be_old
    )
    return Response(info, media_type="application/json")


@router.get(f"{GIT_REPO}/auth-check")
async def check_read_access(conn: ReadConn, caller: MaybeCaller, address: GitRepo) -> Done:
    """Tell whether the caller may read the content of a repository."""
    await repos.get(conn, caller, address, Right.read)
    return Done()


@router.get(f"{GIT_REPO}/auth-check/write")
async def check_write_access(conn: ReadConn, caller: MaybeCaller, address: GitRepo) -> Done:
    """Tell whether the caller may change the content of a repository."""
    await repos.get(conn, caller, address, Right.write)
    return Done()


@lists_router.get(GIT_REPOS, tags=GIT_TAGS, responses=PAGED_RESPONSES)
async def list_repos(
    database: Db, caller: MaybeCaller, asked: RequestedList, may_be_old: MayBeOld
) -> list[RepoInfo]:
    """List the repositories of a type that the caller may see, page by page, newest first.

    A tag of `filter`, a model or dataset that a card names, a range of parameters: all must fit.
    Nothing is served for inference here, so `apps`, `inference` and `inference_provider` find none.
    """
    page, order = asked.page, asked.order
    async with database.read_replica() if may_be_old else database.read() as conn:
        listed = await lists.list_repos(
            conn, caller, asked.filters, order=order, after=page.after, limit=page.reach
        )
        on_page = page.cut(listed, position=lambda repo: write_list_cursor(repo, order.sort))
        found = await information.list_info(conn, caller, on_page, asked.properties)
    await information.add_content(database, on_page, found, asked.properties)
    return [RepoInfo.model_validate(each) for each in found]


@lists_router.get("/api/tasks", tags=["models"])
async def list_tasks(conn: PublicReadConn) -> dict[str, TaskInfo]:
    """List the known tasks by id, each with the public models of the moment whose card names it.

    The first model of a task is the one that a client takes when none is named.
    """
    models = await tag_lists.list_task_models(conn)
    return {
        task.id: TaskInfo(
            id=task.id,
            label=task.label,
            models=tuple(TaskModel(id=name) for name in models.get(task.id, ())),
        )
        for task in taxonomy.tasks().values()
    }


@lists_router.get("/api/models-tags-by-type", tags=["models"])
async def list_model_tags(
    conn: PublicReadConn, only: Annotated[ModelTagType | None, Query(alias="type")] = None
) -> dict[ModelTagType, list[TagInfo]]:
    """List the tags of models by type: the known ones, and those in use in public models."""
    return _render_tags(await tag_lists.list_model_tags(conn, only=only))


@lists_router.get("/api/datasets-tags-by-type", tags=["datasets"])
async def list_dataset_tags(
    conn: PublicReadConn, only: Annotated[DatasetTagType | None, Query(alias="type")] = None
) -> dict[DatasetTagType, list[TagInfo]]:
    """List the tags of datasets by type: the known ones, and those in use in public datasets."""
    return _render_tags(await tag_lists.list_dataset_tags(conn, only=only))


def _render_tags(listed: dict[str, list[ListedTag]]) -> dict[Any, list[TagInfo]]:
    return {each: [TagInfo.of(tag) for tag in tags] for each, tags in listed.items()}


@lists_router.get("/api/settings/repositories", tags=["users"], responses=PAGED_RESPONSES)
async def list_own_repos(conn: ReadConn, caller: AnyCaller, page: ListPage) -> list[OwnRepo]:
    """List the caller's own repositories of all types, with the space they take."""
    return await _list_owned(conn, caller, page, organization=None)


@lists_router.get(
    "/api/organizations/{name}/settings/repositories", tags=["orgs"], responses=PAGED_RESPONSES
)
async def list_organization_repos(
    conn: ReadConn, caller: AnyCaller, name: str, page: ListPage
) -> list[OwnRepo]:
    """List those repositories of an organization that the caller, a member, may see."""
    return await _list_owned(conn, caller, page, organization=name)


async def _list_owned(
    conn: Reader, caller: AnyCaller, page: ListPage, *, organization: str | None
) -> list[OwnRepo]:
    owner_id = await lists.get_owner_id(conn, caller, organization)
    owned = await lists.list_of_owner(conn, caller, owner_id, after=page.after, limit=page.reach)
    all_bytes = await store.size_of_owner(conn, owner_id)
    on_page = page.cut(owned, position=write_owner_list_cursor)
    return [OwnRepo.of(repo, all_bytes=all_bytes) for repo in on_page]


@trees_router.get("/tree" + IN_REVISION, responses=PAGED_RESPONSES)
async def list_repo_tree(
    database: Db,
    location: RequestedPath,
    page: TreePage,
    *,
    recursive: bool = False,
    expand: bool = False,
) -> list[TreeEntry]:
    """List the files and folders of a revision, or of a folder in it.

    The path is the revision and, behind it, the folder; slashes within a revision are `%2F`.
    All pages show the commit that the first one showed.
    """
    folder = location.for_page(page)
    revision = folder.revision
    entries = await revisions.list_entries(
        revision, folder.path, recursive=recursive, after=folder.after, limit=page.reach
    )
    on_page = page.cut(
        entries, position=lambda entry: write_tree_cursor(revision.commit, entry.path)
    )
    return await _render_entries(database, revision, on_page, expand=expand)


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
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(problems) from None


@trees_router.post("/paths-info" + REVISION, openapi_extra=_TAKES_PATHS)
async def get_paths_info(
    database: Db,
    revision: RequestedRevision,
    body: Annotated[PathsInfo, Depends(_requested_paths)],
) -> list[TreeEntry]:
    """Get what lies at these paths; those where nothing lies are left out."""
    entries = await revisions.find_entries(revision, body.paths)
    return await _render_entries(database, revision, entries, expand=body.expand)


async def _render_entries(
    database: Database, revision: Revision, entries: Sequence[GitEntry], *, expand: bool
) -> list[TreeEntry]:
    listed = await revisions.describe_entries(database, revision, entries, with_commits=expand)
    return [TreeEntry.of(each, expand=expand) for each in listed]


@trees_router.get("/treesize" + IN_REVISION)
async def get_tree_size(location: RequestedPath) -> TreeSize:
    """Get how many bytes the files of a revision, or of a folder in it, have together."""
    size = await revisions.size_of(location.revision, location.path)
    return TreeSize(path=location.path, size=size)


@trees_router.get(
    "/compare/{comparison:revision}",
    response_model=str,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        413: {"description": "The revisions differ by more than one response holds."},
    },
)
async def compare_revisions(
    database: Db,
    caller: MaybeCaller,
    address: GitRepo,
    comparison: Annotated[
        str, Path(description="`old...new` since the last common commit, or `old..new`.")
    ],
    *,
    raw: Annotated[bool, Query(description="As plain text instead of a JSON string.")] = False,
) -> Response:
    """Get what changed between two revisions of a repository, as git writes it."""
    text = await comparisons.get_patch(database, caller, address, comparison)
    return PlainTextResponse(text) if raw else JSONResponse(text)


@trees_router.get("/scan")
async def get_scan_status(conn: ReadConn, caller: MaybeCaller, address: GitRepo) -> SecurityStatus:
    """Tell that the files of a repository were not scanned: this hub has no scanner."""
    await repos.get(conn, caller, address, Right.see)
    return SecurityStatus.model_validate(information.render_security_status())


@trees_router.get("/commits" + REVISION, responses=PAGED_RESPONSES)
async def list_repo_commits(
    revision: RequestedRevision,
    page: CommitPage,
    expand: Annotated[list[str] | None, Query(alias="expand[]")] = None,
) -> list[Commit]:
    """List a revision's commits, newest first.

    With `expand[]=formatted` titles and messages come a second time, safe to put into a page.
    """
    start = RevisionPath(revision=revision, path="").for_page(page)
    skip = read_commit_count(start.after)
    commits = await revisions.list_commits(start.revision, skip=skip, limit=page.reach)
    position = write_tree_cursor(start.revision.commit, str(skip + page.limit))
    on_page = page.cut(commits, position=lambda _: position)
    return [Commit.of(commit, formatted="formatted" in (expand or [])) for commit in on_page]
