"""How a repository comes into being: git on the disk first, then the row that makes it real."""

import asyncio
from dataclasses import replace

from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.ids import new_object_id
from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos import service, store
from hublet.repos.errors import InvalidRepo, RepoExists
from hublet.repos.git import folders, initial
from hublet.repos.names import check_repo_name
from hublet.repos.namespaces import get_namespace
from hublet.repos.records import Repo, RepoType, Visibility
from hublet.repos.refs import store as refs
from hublet.repos.refs.records import MAIN
from hublet.repos.visibility import check_visibility
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepo:
    type: RepoType
    # None: the caller's own.
    namespace: str | None = None
    name: str
    visibility: Visibility = Visibility.public
    sdk: str | None = None
    resource_group_id: str | None = None


async def create(database: Database, caller: Caller, wanted: NewRepo) -> Repo:
    """Create a repository; one with git starts with a commit that holds .gitattributes."""
    _check(wanted)
    async with database.read() as conn:
        repo = await _planned(conn, caller, wanted)
        if await store.find_by_name(conn, repo.address) is not None:
            raise _taken(conn, repo)
    if not repo.type.has_git:
        async with database.transaction() as conn:
            await _add(conn, repo)
        return repo
    folder = folders.folder_of(database.hub.settings.database.data_dir, repo.id)
    head = await asyncio.to_thread(initial.create, folder, author=caller.user_name, at=now())
    repo = replace(repo, head_sha=head)
    try:
        async with database.transaction() as conn:
            await _add(conn, repo)
            await refs.move(conn, repo.id, UpdatedRef(ref=MAIN, old_sha=None, new_sha=head))
    except BaseException:
        await asyncio.to_thread(folders.remove, folder)
        raise
    return repo


def _check(wanted: NewRepo) -> None:
    check_repo_name(wanted.name, wanted.type)
    check_visibility(wanted.type, wanted.visibility)
    if wanted.type is RepoType.space and wanted.sdk is None:
        raise InvalidRepo("sdk is required for a space: gradio, streamlit, docker or static.")
    if wanted.type is not RepoType.space and wanted.sdk is not None:
        raise InvalidRepo(f"sdk is for spaces only, not for a {wanted.type}.")


async def _add(conn: Connection, repo: Repo) -> None:
    if not await service.add(conn, repo):
        raise _taken(conn, repo)


def _taken(conn: Reader, repo: Repo) -> RepoExists:
    return RepoExists(repo.full_name, url=repo.url(conn.hub.settings.base_url))


async def _planned(conn: Reader, caller: Caller, wanted: NewRepo) -> Repo:
    namespace = await get_namespace(
        conn,
        caller,
        wanted.namespace or caller.user_name,
        resource_group_id=wanted.resource_group_id,
    )
    at = now()
    return Repo(
        id=new_object_id(),
        type=wanted.type,
        owner_id=namespace.id,
        owner_name=namespace.name,
        owner_type=namespace.type,
        name=wanted.name,
        visibility=wanted.visibility,
        sdk=wanted.sdk,
        resource_group_id=wanted.resource_group_id,
        creator_id=caller.user_id,
        created_with=caller.origin,
        created_at=at,
        updated_at=at,
    )
