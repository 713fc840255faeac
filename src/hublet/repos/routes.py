"""HTTP for repositories as such: creating, moving, deleting."""

from typing import Any

from pydantic import MISSING

from hublet.core.database import Database, Reader
from hublet.core.http import Conn, Db, Router
from hublet.core.schema import Done
from hublet.repos import creation, moving, service
from hublet.repos.creation import NewRepo
from hublet.repos.names import split_name
from hublet.repos.records import Repo, RepoAddress, RepoType, Right, Visibility
from hublet.repos.schemas import CreateRepo, DeleteRepo, MoveRepo, RepoTaken, RepoUrl
from hublet.repos.visibility import asked_visibility
from hublet.tokens.auth import AnyCaller

router = Router(prefix="/api/repos", tags=["repos"])

Responses = dict[int | str, dict[str, Any]]
_MISSING: Responses = {404: {"description": "There is no such repository or resource group."}}
_TAKEN: Responses = {409: {"model": RepoTaken, "description": "The name is taken."}}


@router.post("/create", responses={**_MISSING, **_TAKEN})
async def create_repo(database: Db, caller: AnyCaller, body: CreateRepo) -> RepoUrl:
    """Create a repository of any type, public unless said otherwise.

    A space needs an `sdk`. What concerns the running of its app is accepted and ignored.
    """
    repo = await creation.create(database, caller, _wanted(body))
    return _url(database, repo)


def _wanted(body: CreateRepo) -> NewRepo:
    namespace, name = split_name(body.name, organization=body.organization)
    return NewRepo(
        type=RepoType(body.type),
        namespace=namespace,
        name=name,
        visibility=_visibility(body),
        sdk=None if body.sdk is MISSING else body.sdk,
        resource_group_id=None if body.resourceGroupId is MISSING else body.resourceGroupId,
    )


def _visibility(body: CreateRepo) -> Visibility:
    asked = asked_visibility(
        visibility=None if body.visibility is MISSING else body.visibility,
        private=None if body.private is MISSING else body.private,
    )
    return asked or Visibility.public


@router.post("/move", responses={**_MISSING, **_TAKEN})
async def move_repo(conn: Conn, caller: AnyCaller, body: MoveRepo) -> RepoUrl:
    """Give a repository another name, another owner, or both; the old address leads there."""
    old = _address(body.type, body.fromRepo, caller)
    repo = await service.get_as_named(conn, caller, old, Right.manage)
    target = _address(body.type, body.toRepo, caller)
    return _url(conn, await moving.move(conn, caller, repo, target))


@router.delete("/delete", responses=_MISSING)
async def delete_repo(conn: Conn, caller: AnyCaller, body: DeleteRepo) -> Done:
    """Delete a repository with its content and its discussions."""
    address = _address(body.type, body.name, caller, organization=body.organization)
    repo = await service.get_as_named(conn, caller, address, Right.manage)
    await service.delete(conn, caller, repo)
    return Done()


def _address(
    type_: str, full_name: str, caller: AnyCaller, *, organization: str | None = None
) -> RepoAddress:
    namespace, name = split_name(full_name, organization=organization)
    return RepoAddress(type=RepoType(type_), namespace=namespace or caller.user_name, name=name)


def _url(place: Database | Reader, repo: Repo) -> RepoUrl:
    return RepoUrl(url=repo.url(place.hub.settings.base_url), name=repo.full_name, id=repo.id)
