"""HTTP for repositories as such: creating, moving, deleting."""

from fastapi import APIRouter
from pydantic import MISSING

from hublet.core.http import Conn, Db
from hublet.core.schema import Done
from hublet.repos import creation, service
from hublet.repos.creation import NewRepo
from hublet.repos.records import RepoAddress, RepoType, Right, Visibility
from hublet.repos.schemas import CreateRepo, DeleteRepo, RepoTaken, RepoUrl
from hublet.tokens.auth import AnyCaller

router = APIRouter(prefix="/api/repos", tags=["repos"])


@router.post("/create", responses={409: {"model": RepoTaken}})
async def create_repo(database: Db, caller: AnyCaller, body: CreateRepo) -> RepoUrl:
    """Create a repository of any type, public unless said otherwise."""
    namespace, _, name = body.name.rpartition("/")
    wanted = NewRepo(
        type=RepoType(body.type),
        namespace=body.organization or namespace or None,
        name=name,
        visibility=_visibility(body),
        sdk=None if body.sdk is MISSING else body.sdk,
        resource_group_id=None if body.resourceGroupId is MISSING else body.resourceGroupId,
    )
    repo = await creation.create(database, caller, wanted)
    url = repo.url(database.hub.settings.base_url)
    return RepoUrl(url=url, name=repo.full_name, id=repo.id)


def _visibility(body: CreateRepo) -> Visibility:
    if body.visibility is not MISSING:
        return Visibility(body.visibility)
    return Visibility.private if body.private is True else Visibility.public


@router.delete("/delete", responses={404: {"description": "There is no such repository."}})
async def delete_repo(conn: Conn, caller: AnyCaller, body: DeleteRepo) -> Done:
    """Delete a repository with its content and its discussions."""
    namespace, _, name = body.name.rpartition("/")
    address = RepoAddress(
        type=RepoType(body.type),
        namespace=body.organization or namespace or caller.user_name,
        name=name,
    )
    repo = await service.get(conn, caller, address, Right.manage)
    await service.delete(conn, caller, repo)
    return Done()
