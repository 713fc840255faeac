"""HTTP for repositories as such: creation, move, deletion, settings, likes and attachments."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import Header, Query, Request
from pydantic import MISSING
from starlette.responses import PlainTextResponse, Response

from hublet.accounts.schemas import UserCard
from hublet.accounts.users import service as accounts
from hublet.core.database import Database, Reader
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.exchange import allow_streaming
from hublet.core.http.file_responses import FILE_RESPONSES, blob_response
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.repos import (
    attachments,
    duplication,
    gating_routes,
    lifecycle,
    likes,
    records,
    service,
    settings,
    store,
)
from hublet.repos.access import requested_visibility
from hublet.repos.attachments import SUFFIXES, check_media_type
from hublet.repos.auth import ANY_REPO, GIT_REPO, GIT_TAGS, MOVED, AnyRepo, GitRepo, body_of
from hublet.repos.browse import content_routes, download_routes
from hublet.repos.browse import routes as browse_routes
from hublet.repos.commits import routes as commit_routes
from hublet.repos.duplication import NewCopy
from hublet.repos.files import bucket_routes
from hublet.repos.files import routes as file_routes
from hublet.repos.lfs import routes as lfs_routes
from hublet.repos.lifecycle import NewRepo
from hublet.repos.names import split_name
from hublet.repos.push import routes as push_routes
from hublet.repos.records import (
    Gated,
    Repo,
    RepoAddress,
    RepoType,
    Right,
    SettingsChange,
    Visibility,
)
from hublet.repos.refs import routes as ref_routes
from hublet.repos.schemas import (
    CreateRepo,
    DeleteRepo,
    DuplicatedRepo,
    DuplicateRepo,
    DuplicateStatus,
    Like,
    MoveRepo,
    OwnerStorage,
    RepoResourceGroupEnvelope,
    RepoSettings,
    RepoStorage,
    RepoTaken,
    RepoTokenResponse,
    RepoUrl,
    SetRepoResourceGroup,
    UpdateRepoSettings,
)
from hublet.repos.xet import routes as xet_routes
from hublet.storage import store as contents
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.tokens import repo_tokens
from hublet.tokens.auth import AccountOwner, AnyCaller, DiscussionWriter, MaybeCaller, actor_of

router = Router(prefix="/api/repos", tags=["repos"])
storage_router = Router()
settings_router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)
likes_router = Router()
attachments_router = Router(tags=["discussions"])

# In the order in which routes are looked up.
ROUTERS: tuple[Router, ...] = (
    router,
    browse_routes.lists_router,
    browse_routes.router,
    settings_router,
    storage_router,
    gating_routes.router,
    likes_router,
    bucket_routes.buckets,
    file_routes.bucket_files,
    bucket_routes.containers,
    file_routes.container_files,
    attachments_router,
    commit_routes.router,
    ref_routes.router,
    commit_routes.cards_router,
    browse_routes.trees_router,
    content_routes.router,
    content_routes.leaderboards_router,
    download_routes.router,
    lfs_routes.router,
    lfs_routes.transfers_router,
    lfs_routes.files_router,
    lfs_routes.bucket_router,
    *xet_routes.ROUTERS,
    push_routes.router,
)

allow_streaming("POST", "/uploads")

Responses = dict[int | str, dict[str, Any]]
_MISSING: Responses = {404: {"description": "There is no such repository or resource group."}}
_TAKEN: Responses = {409: {"model": RepoTaken, "description": "The name is taken."}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TAKES_A_FILE: dict[str, Any] = {
    "requestBody": {"required": True, "content": dict.fromkeys(SUFFIXES, _BINARY)}
}


@storage_router.get(
    f"{ANY_REPO}/storage", tags=[*GIT_TAGS, "buckets", "containers"], responses=MOVED
)
async def get_repo_storage(conn: ReadConn, caller: AnyCaller, address: AnyRepo) -> RepoStorage:
    """Get how many bytes a repository holds, and how many at rest it needs.

    Only its owner, or an administrator of the organization, may know.
    """
    return RepoStorage.of(await settings.get_storage(conn, caller, address))


@storage_router.get("/api/settings/storage", tags=["users"])
async def get_own_storage(conn: ReadConn, caller: AnyCaller) -> OwnerStorage:
    """Get how many bytes the caller's repositories hold, and how many at rest they need."""
    return _owner_storage(conn, await settings.get_owner_storage(conn, caller, None))


@storage_router.get("/api/organizations/{name}/settings/storage", tags=["orgs"])
async def get_organization_storage(conn: ReadConn, caller: AnyCaller, name: str) -> OwnerStorage:
    """Get the same of an organization, for its administrators."""
    return _owner_storage(conn, await settings.get_owner_storage(conn, caller, name))


def _owner_storage(conn: Reader, used: records.StorageUsage) -> OwnerStorage:
    limit = conn.hub.settings.limits.owner_bytes
    return OwnerStorage(raw=used.raw, stored=used.stored, shared=used.shared, limit=limit)


@router.post("/create", responses={**_MISSING, **_TAKEN})
async def create_repo(database: Db, caller: AnyCaller, body: CreateRepo) -> RepoUrl:
    """Create a repository of any type, public unless the request or its organization says otherwise.

    A space needs an `sdk`. What concerns the running of its app is accepted and ignored.
    """
    repo = await lifecycle.create(database, caller, _new_repo(body))
    return _url(database, repo)


def _new_repo(body: CreateRepo) -> NewRepo:
    namespace, name = split_name(body.name, organization=body.organization)
    return NewRepo(
        type=RepoType(body.type),
        namespace=namespace,
        name=name,
        visibility=_visibility(body),
        sdk=None if body.sdk is MISSING else body.sdk,
        resource_group_id=None if body.resourceGroupId is MISSING else body.resourceGroupId,
    )


def _visibility(body: CreateRepo | UpdateRepoSettings) -> Visibility | None:
    return requested_visibility(
        visibility=None if body.visibility is MISSING else body.visibility,
        private=None if body.private is MISSING else body.private,
    )


@router.post("/move", responses={**_MISSING, **_TAKEN})
async def move_repo(conn: Conn, caller: AnyCaller, body: MoveRepo) -> RepoUrl:
    """Give a repository another name, another owner, or both; the old address leads there."""
    old = _address(body.type, body.fromRepo, caller)
    repo = await service.get_as_named(conn, caller, old, Right.manage)
    target = _address(body.type, body.toRepo, caller)
    return _url(conn, await lifecycle.move(conn, caller, repo, target))


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


def _url(database: Database | Reader, repo: Repo) -> RepoUrl:
    return RepoUrl(url=repo.url(database.hub.settings.base_url), name=repo.full_name, id=repo.id)


@settings_router.put("/settings")
async def update_repo_settings(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: UpdateRepoSettings
) -> RepoSettings:
    """Change who sees a repository, who may read it, and whether it has discussions.

    A private repository may be gated too; the gate counts once it is public.
    """
    repo = await service.get(conn, caller, address, Right.manage)
    return RepoSettings.of(
        await settings.update_settings(conn, caller, repo, _settings_change(body))
    )


def _settings_change(body: UpdateRepoSettings) -> SettingsChange:
    gated = None if body.gated is MISSING else body.gated
    return SettingsChange(
        visibility=_visibility(body),
        gated=Gated(gated) if gated else gated,
        discussions_disabled=(
            None if body.discussionsDisabled is MISSING else body.discussionsDisabled
        ),
    )


@settings_router.post("/duplicate", responses=_TAKEN)
async def duplicate_repo(
    request: Request,
    database: Db,
    caller: AnyCaller,
    address: GitRepo,
    body: DuplicateRepo | None = None,
) -> DuplicatedRepo:
    """Copy a repository that the caller may read: branches, tags, their history and large files.

    Its discussions and pull requests, its likes and who may pass its gate stay behind. What
    concerns the running of a space is accepted and ignored.
    """
    new = _new_copy(address, body or DuplicateRepo())
    async with push_routes.slots_of(request).one():
        copy = await duplication.duplicate(database, caller, address, new)
    return DuplicatedRepo(url=copy.url(database.hub.settings.base_url))


@settings_router.get("/duplicate/status")
async def get_duplicate_status(
    conn: ReadConn, caller: MaybeCaller, address: GitRepo
) -> DuplicateStatus:
    """Tell that a repository is complete: a copy is made before the request for it is answered."""
    await service.get(conn, caller, address, Right.see)
    return DuplicateStatus(status="completed")


def _new_copy(address: RepoAddress, body: DuplicateRepo) -> NewCopy:
    namespace, name = split_name(address.name if body.repository is MISSING else body.repository)
    return NewCopy(
        namespace=namespace,
        name=name,
        visibility=requested_visibility(
            visibility=None if body.visibility is MISSING else body.visibility,
            private=None if body.private is MISSING else body.private,
        ),
        resource_group_id=None if body.resourceGroupId is MISSING else body.resourceGroupId,
    )


@settings_router.get("/jwt")
async def get_repo_token(
    conn: ReadConn,
    caller: AnyCaller,
    address: GitRepo,
    *,
    write: Annotated[bool, Query(description="For writing too; then it lives 10 minutes.")] = False,
    expires_in: Annotated[
        int | None, Query(ge=1, le=86_400, description="In seconds; an hour at most.")
    ] = None,
) -> RepoTokenResponse:
    """Get a token for this repository alone, to hand to a program that needs no more.

    It ends with the token that it was asked with, and with the right of its holder.
    """
    repo = await service.get(conn, caller, address, Right.write if write else Right.read)
    token = repo_tokens.new_token(
        caller,
        repo=(repo.id, repo.type, repo.full_name),
        may_write=write,
        life=None if expires_in is None else timedelta(seconds=expires_in),
    )
    prefix = conn.hub.settings.tokens.prefix
    value = repo_tokens.write(token, prefix=prefix, keys=conn.hub.keys)
    return RepoTokenResponse(accessToken=f"Bearer {value}", token=value, exp=token.expires)


@settings_router.get("/resource-group")
async def get_repo_resource_group(
    conn: ReadConn, caller: AnyCaller, address: GitRepo
) -> RepoResourceGroupEnvelope:
    """Show the resource group of a repository, to its members and to administrators."""
    repo = await service.get(conn, caller, address, Right.see)
    return RepoResourceGroupEnvelope.of(await settings.find_resource_group(conn, caller, repo))


@settings_router.post("/resource-group")
async def set_repo_resource_group(
    request: Request, conn: Conn, caller: AnyCaller, address: GitRepo, body: SetRepoResourceGroup
) -> RepoResourceGroupEnvelope:
    """Put a repository into a resource group, or out of one, as the organization's administrator."""
    repo = await service.get(conn, caller, address, Right.manage)
    actor = actor_of(request, caller)
    group = await settings.set_resource_group(conn, actor, caller, repo, body.resourceGroupId)
    return RepoResourceGroupEnvelope.of(group)


@likes_router.post(f"{GIT_REPO}/like", tags=GIT_TAGS, responses=MOVED)
async def like_repo(conn: Conn, caller: AccountOwner, address: GitRepo) -> Done:
    """Like a repository; doing it again changes nothing."""
    repo = await service.get(conn, caller, address, Right.see)
    await likes.like(conn, caller, repo)
    return Done()


@likes_router.delete(f"{GIT_REPO}/like", tags=GIT_TAGS, responses=MOVED)
async def unlike_repo(conn: Conn, caller: AccountOwner, address: GitRepo) -> Done:
    """Take a like back; doing it again changes nothing."""
    repo = await service.get(conn, caller, address, Right.see)
    await likes.unlike(conn, caller, repo)
    return Done()


@likes_router.get(f"{GIT_REPO}/likers", tags=GIT_TAGS, responses=PAGED_RESPONSES | MOVED)
async def list_repo_likers(
    conn: ReadConn, caller: MaybeCaller, address: GitRepo, page: PageQuery
) -> list[UserCard]:
    """List who likes a repository, page by page."""
    repo = await service.get(conn, caller, address, Right.see)
    users = await store.list_likers(conn, repo.id, after=page.after, limit=page.reach)
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(users, position=lambda u: u.id)]


@likes_router.get("/api/users/{user}/likes", tags=["users"], responses=PAGED_RESPONSES)
async def list_user_likes(
    conn: ReadConn, caller: MaybeCaller, user: str, page: PageQuery
) -> list[Like]:
    """List the public repositories that a user likes, the newest like first."""
    is_administrator = caller is not None and caller.is_admin
    account = await accounts.get_visible_user(conn, user, to_administrator=is_administrator)
    listed = await likes.list_of_user(conn, account.id, after=page.after, limit=page.reach)
    return [Like.of(like) for like in page.cut(listed, position=likes.write_position)]


@attachments_router.post("/uploads", response_class=PlainTextResponse, openapi_extra=_TAKES_A_FILE)
async def upload_attachment(
    request: Request,
    database: Db,
    caller: DiscussionWriter,
    content_type: Annotated[str, Header(include_in_schema=False)] = "",
) -> str:
    """Upload a picture, video, sound or PDF to show in a text; the answer is its address.

    At most 10 MiB, videos 50 MiB. Whoever knows the address can see it, and nobody can guess it.
    """
    media_type = check_media_type(content_type)
    attachment = await attachments.add(database, caller, media_type, body_of(request))
    return f"{database.hub.settings.base_url}/uploads/{attachment.name}"


@attachments_router.get("/uploads/{name}", response_class=Response, responses=FILE_RESPONSES)
async def get_attachment(request: Request, database: Db, name: str) -> Response:
    """Get what somebody uploaded to show in a text; no token is needed."""
    async with database.read() as conn:
        attachment = await attachments.get(conn, name)
        content = (await contents.find_contents(conn, [attachment.sha256]))[attachment.sha256]
    return await blob_response(
        request,
        ContentSource(open_store(database.hub.settings), content),
        size=attachment.size,
        etag=attachment.sha256,
        file_name=attachment.name,
        media_type=attachment.media_type,
        # The content at an address never changes.
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
