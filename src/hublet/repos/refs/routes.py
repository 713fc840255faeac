"""HTTP for branches and tags."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import MISSING

from hublet.core.http import Conn, Db, Router
from hublet.core.schema import Done
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo
from hublet.repos.records import NewBranch
from hublet.repos.refs import branches
from hublet.repos.refs.schemas import CreateBranch, CreateTag, Refs, SuperSquash
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)

_TAKEN: dict[int | str, dict[str, Any]] = {409: {"description": "The name is taken."}}
_MOVED_ON: dict[int | str, dict[str, Any]] = {409: {"description": "It moved meanwhile."}}


@router.get("/refs")
async def list_refs(
    database: Db,
    caller: MaybeCaller,
    repo: GitRepo,
    *,
    include_prs: Annotated[bool, Query(description="Show pull requests as well.")] = False,
) -> Refs:
    """List the branches and tags of a repository."""
    refs = await branches.list_refs(database, caller, repo)
    return Refs.of(refs, with_pull_requests=include_prs)


@router.post("/branch/{revision:revision}", responses=_TAKEN)
async def create_branch(
    database: Db, caller: AnyCaller, repo: GitRepo, revision: str, body: CreateBranch
) -> Done:
    """Create a branch at main, or at another starting point."""
    branch = NewBranch(
        name=revision,
        starting_point=None if body.startingPoint is MISSING else body.startingPoint,
        is_empty=body.emptyBranch,
        overwrite=body.overwrite,
    )
    await branches.create_branch(database, caller, repo, branch)
    return Done()


@router.delete("/branch/{revision:revision}", responses=_MOVED_ON)
async def delete_branch(conn: Conn, caller: AnyCaller, repo: GitRepo, revision: str) -> Done:
    """Delete a branch; main stays."""
    await branches.delete_branch(conn, caller, repo, revision)
    return Done()


@router.post("/tag/{revision:revision}", responses=_TAKEN)
async def create_tag(
    database: Db, caller: AnyCaller, repo: GitRepo, revision: str, body: CreateTag
) -> Done:
    """Give the commit that a revision stands for a name that stays."""
    await branches.create_tag(database, caller, repo, name=body.tag, revision=revision)
    return Done()


@router.delete("/tag/{revision:revision}", responses=_MOVED_ON)
async def delete_tag(conn: Conn, caller: AnyCaller, repo: GitRepo, revision: str) -> Done:
    """Delete a tag."""
    await branches.delete_tag(conn, caller, repo, revision)
    return Done()


@router.post("/super-squash/{revision:revision}", responses=_MOVED_ON)
async def squash_history(
    database: Db, caller: AnyCaller, repo: GitRepo, revision: str, body: SuperSquash
) -> Done:
    """Make one commit of the whole history of a branch or a pull request, for good."""
    message = f"Squash {revision}" if body.message is MISSING else body.message
    await branches.squash(database, caller, repo, branch=revision, message=message)
    return Done()
