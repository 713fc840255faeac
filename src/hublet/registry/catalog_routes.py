"""HTTP for containers as repositories of images: lists, tags, manifests with layers, retention."""

from typing import Annotated

from fastapi import Query

from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.registry import catalog, collection
from hublet.registry.catalog_schemas import (
    Container,
    ContainerImage,
    ContainerInfo,
    ContainerManifest,
    ContainerRetention,
    ContainerTag,
    SetContainerRetention,
)
from hublet.repos import service as repos
from hublet.repos.auth import BUCKET, MOVED, FilesRepo
from hublet.repos.browse import lists
from hublet.repos.browse.auth import ListPage, RequestedOrder
from hublet.repos.browse.lists import write_list_cursor
from hublet.repos.browse.records import RepoFilter
from hublet.repos.records import RepoType, Right
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router(tags=["containers"], responses=MOVED)

CONTAINER = BUCKET.replace("buckets", "containers")

_Text = Annotated[str, Query(max_length=200)]
_Words = Annotated[list[str] | None, Query(max_length=20, description="Parts of owner/name.")]
_Image = Annotated[
    str, Query(max_length=255, description="The path of an image below the repository.")
]


@router.get("/api/containers", responses=PAGED_RESPONSES)
async def list_all_containers(
    conn: ReadConn,
    caller: MaybeCaller,
    page: ListPage,
    order: RequestedOrder,
    search: _Words = None,
    author: _Text = "",
) -> list[Container]:
    """List the containers of everybody that the caller may see, page by page."""
    filters = RepoFilter(type=RepoType.container, author=author, words=tuple(search or ()))
    listed = await lists.list_repos(
        conn, caller, filters, order=order, after=page.after, limit=page.reach
    )
    shown = page.cut(listed, position=lambda repo: write_list_cursor(repo, order.sort))
    tags = await catalog.count_tags(conn, [repo.id for repo in shown])
    return [Container.with_tags(repo, tags=tags.get(repo.id, 0)) for repo in shown]


@router.get(CONTAINER)
async def get_container(conn: ReadConn, caller: MaybeCaller, address: FilesRepo) -> ContainerInfo:
    """Tell of a container: who sees it, how large it is, which images it has."""
    repo = await repos.get(conn, caller, address, Right.see)
    images = await catalog.list_images(conn, repo)
    return ContainerInfo.with_tags(
        repo,
        tags=sum(image.tags for image in images),
        images=[ContainerImage.of(repo, image) for image in images],
    )


@router.get(f"{CONTAINER}/images")
async def list_container_images(
    conn: ReadConn, caller: MaybeCaller, address: FilesRepo
) -> list[ContainerImage]:
    """List the images of a container: its own, and those at paths below it."""
    repo = await repos.get(conn, caller, address, Right.read)
    return [ContainerImage.of(repo, image) for image in await catalog.list_images(conn, repo)]


@router.get(f"{CONTAINER}/tags", responses=PAGED_RESPONSES)
async def list_container_tags(
    database: Db,
    caller: MaybeCaller,
    address: FilesRepo,
    page: PageQuery,
    image: Annotated[
        str | None,
        Query(max_length=255, description="Only of the image at this path; empty: of its own."),
    ] = None,
    search: _Text = "",
) -> list[ContainerTag]:
    """List the tags of a container, those pushed last first, with digest, size and platforms."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
    views = await catalog.list_tags(
        database, repo, image=image, search=search, after=page.after, limit=page.reach
    )
    shown = page.cut(views, position=catalog.write_tag_cursor)
    return [ContainerTag.of(repo, view) for view in shown]


@router.get(f"{CONTAINER}/manifests/{{reference}}")
async def get_container_manifest(
    database: Db, caller: MaybeCaller, address: FilesRepo, reference: str, image: _Image = ""
) -> ContainerManifest:
    """Get a manifest by digest or tag: its layers with sizes and the commands that made them."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
    view = await catalog.get_manifest(database, repo, image=image, reference=reference)
    return ContainerManifest.of(repo, view)


@router.get(f"{CONTAINER}/retention")
async def get_container_retention(
    conn: ReadConn, caller: AnyCaller, address: FilesRepo
) -> ContainerRetention:
    """Show which images of a container are kept."""
    repo = await repos.get(conn, caller, address, Right.manage)
    return ContainerRetention.of(await collection.get_retention_rule(conn, repo))


@router.put(f"{CONTAINER}/retention")
async def set_container_retention(
    conn: Conn, caller: AnyCaller, address: FilesRepo, body: SetContainerRetention
) -> ContainerRetention:
    """Set which images of a container are kept; what goes is removed within the hour."""
    repo = await repos.get(conn, caller, address, Right.manage)
    rule = body.rule(await collection.get_retention_rule(conn, repo))
    await collection.set_retention_rule(conn, caller, repo, rule)
    return ContainerRetention.of(rule)
