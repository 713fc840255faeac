"""HTTP for buckets as such, and the same for containers."""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import MISSING
from starlette.responses import Response

from hublet.core.clock import to_micros
from hublet.core.errors import InvalidRequest
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, EventStream
from hublet.core.http.exchange import exchange_of
from hublet.core.http.paging import PAGED_RESPONSES
from hublet.core.schema import Done
from hublet.repos import lifecycle, settings
from hublet.repos import service as repos
from hublet.repos.access import requested_visibility
from hublet.repos.auth import BUCKET, MOVED, FilesRepo, mirror_for_containers, type_of
from hublet.repos.browse import lists
from hublet.repos.browse.auth import ListPage
from hublet.repos.browse.lists import write_list_cursor
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter
from hublet.repos.errors import RepoNotFound
from hublet.repos.files import service
from hublet.repos.files.changes import stream_changes
from hublet.repos.files.schemas import Bucket, CreateBucket, UpdateBucket
from hublet.repos.lifecycle import NewRepo
from hublet.repos.records import Repo, RepoAddress, Right, SettingsChange, Visibility
from hublet.repos.schemas import RepoResourceGroupEnvelope, RepoTaken, RepoUrl, SetRepoResourceGroup
from hublet.tokens.auth import AnyCaller, MaybeCaller, actor_of, caller_of

buckets = Router(tags=["buckets"], responses=MOVED)

_OLDEST_FIRST = ListOrder(sort=ListSort.creation, ascending=True)


@buckets.post(BUCKET, responses={409: {"model": RepoTaken}})
async def create_bucket(
    database: Db, caller: AnyCaller, address: FilesRepo, body: CreateBucket | None = None
) -> RepoUrl:
    """Create a bucket; the namespace `me` is one's own.

    It is public unless the request or its organization says otherwise.
    """
    repo = await lifecycle.create(database, caller, _new_repo(address, body or CreateBucket()))
    url = repo.url(database.hub.settings.base_url)
    return RepoUrl(url=url, name=repo.full_name, id=repo.id)


def _new_repo(address: RepoAddress, body: CreateBucket) -> NewRepo:
    return NewRepo(
        type=address.type,
        namespace=None if address.namespace == service.ME else address.namespace,
        name=address.name,
        visibility=_visibility(body),
        resource_group_id=None if body.resourceGroupId is MISSING else body.resourceGroupId,
    )


def _visibility(body: CreateBucket | UpdateBucket) -> Visibility | None:
    return requested_visibility(
        visibility=None if body.visibility is MISSING else body.visibility,
        private=None if body.private is MISSING else body.private,
    )


@buckets.get(BUCKET)
async def get_bucket(conn: ReadConn, caller: MaybeCaller, address: FilesRepo) -> Bucket:
    """Tell of a bucket: who sees it, how many files it has and how large they are together."""
    return Bucket.of(await repos.get(conn, caller, address, Right.see))


@buckets.delete(BUCKET)
async def delete_bucket(conn: Conn, caller: AnyCaller, address: FilesRepo) -> Done:
    """Delete a bucket with all its files."""
    repo = await repos.get_as_named(conn, caller, address, Right.manage)
    await repos.delete(conn, caller, repo)
    return Done()


async def _resume_position(
    cursor: Annotated[
        str | None,
        Query(
            pattern="^[0-9]{1,16}$", description="The `cursor` of the last event that was heard."
        ),
    ] = None,
    since: Annotated[
        datetime | None, Query(description="Replay changes after this moment, such as `updatedAt`.")
    ] = None,
) -> int | None:
    if cursor is not None and since is not None:
        raise InvalidRequest("cursor, since: send one of them, not both.")
    if since is not None:
        return to_micros(since if since.tzinfo else since.replace(tzinfo=UTC))
    return None if cursor is None else int(cursor)


@buckets.get(f"{BUCKET}/events", response_class=Response, responses=EVENT_STREAM_RESPONSES)
async def stream_bucket_events(
    request: Request,
    database: Db,
    caller: MaybeCaller,
    address: FilesRepo,
    position: Annotated[int | None, Depends(_resume_position)],
) -> Response:
    """Follow the files of a bucket: each that is added, updated or deleted, as it happens.

    Events are `changes` (`{cursor, changes: [{path, op, size, xetHash, uploadedAt, mtime}]}`), `ready` when
    what came after `cursor` or `since` has been told, `reset` when that is too long ago (list the files
    again), and `reconnect` when the hub ends the stream. Changes are kept for 15 minutes.
    """
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)

    async def check_access() -> None:
        exchange_of(request).known_caller = None
        now = None if caller is None else await caller_of(request)
        async with database.read() as conn:
            found = await repos.get(conn, now, repo.address, Right.read)
        if found.id != repo.id:
            raise RepoNotFound

    changes = partial(stream_changes, database, repo.id, position)
    return EventStream(request, changes, check_access=check_access)


@buckets.put(f"{BUCKET}/settings")
async def update_bucket_settings(
    conn: Conn, caller: AnyCaller, address: FilesRepo, body: UpdateBucket
) -> Bucket:
    """Change who sees a bucket, and whether it has discussions."""
    repo = await repos.get(conn, caller, address, Right.manage)
    disabled = None if body.discussionsDisabled is MISSING else body.discussionsDisabled
    change = SettingsChange(visibility=_visibility(body), discussions_disabled=disabled)
    return Bucket.of(await settings.update_settings(conn, caller, repo, change))


@buckets.get(f"{BUCKET}/resource-group")
async def get_bucket_resource_group(
    conn: ReadConn, caller: AnyCaller, address: FilesRepo
) -> RepoResourceGroupEnvelope:
    """Show the resource group of a bucket, to its members and to administrators."""
    repo = await repos.get(conn, caller, address, Right.see)
    return RepoResourceGroupEnvelope.of(await settings.find_resource_group(conn, caller, repo))


@buckets.post(f"{BUCKET}/resource-group")
async def set_bucket_resource_group(
    request: Request, conn: Conn, caller: AnyCaller, address: FilesRepo, body: SetRepoResourceGroup
) -> RepoResourceGroupEnvelope:
    """Put a bucket into a resource group, or out of one, as the organization's administrator."""
    repo = await repos.get(conn, caller, address, Right.manage)
    actor = actor_of(request, caller)
    group = await settings.set_resource_group(conn, actor, caller, repo, body.resourceGroupId)
    return RepoResourceGroupEnvelope.of(group)


@buckets.get("/api/buckets/{namespace}", responses=PAGED_RESPONSES)
async def list_buckets(
    request: Request,
    conn: ReadConn,
    caller: MaybeCaller,
    page: ListPage,
    namespace: str,
    search: Annotated[str, Query(max_length=200)] = "",
) -> list[Bucket]:
    """List the buckets of a user or organization that the caller may see, oldest first."""
    owner = await service.get_owner_name(conn, caller, namespace)
    filters = RepoFilter(type=type_of(request), author=owner, name_part=search)
    listed = await lists.list_repos(
        conn, caller, filters, order=_OLDEST_FIRST, after=page.after, limit=page.reach
    )
    return [Bucket.of(repo) for repo in page.cut(listed, position=_position)]


@buckets.delete("/api/buckets/{namespace}")
async def delete_bucket_without_owner(_: AnyCaller, namespace: str) -> Done:  # noqa: ARG001 - described
    """Answer 404: a bucket of this hub has an owner, in the form `owner/name`."""
    raise RepoNotFound


def _position(repo: Repo) -> str:
    return write_list_cursor(repo, _OLDEST_FIRST.sort)


containers = mirror_for_containers(buckets, without={"get_bucket"})
