"""HTTP for the trusted publishers of a repository: list, add, read, replace, delete."""

from typing import Annotated

from fastapi import Path, Request

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.oauth.publishers import service
from hublet.oauth.schemas import PublisherRequest, TrustedPublisher
from hublet.repos import service as repos
from hublet.repos.auth import ANY_REPO, MOVED, AnyRepo
from hublet.repos.records import Right
from hublet.tokens.auth import AnyCaller, actor_of

router = Router(prefix=f"{ANY_REPO}/trusted-publishers", tags=["oauth"], responses=MOVED)

_PublisherId = Annotated[
    str, Path(pattern=r"^[0-9a-f]{24}$", description="The id of the publisher.")
]


@router.get("")
async def list_trusted_publishers(
    conn: ReadConn, caller: AnyCaller, address: AnyRepo
) -> list[TrustedPublisher]:
    """List the workflows that a repository trusts, oldest first; for who may manage it."""
    repo = await repos.get(conn, caller, address, Right.manage)
    return [TrustedPublisher.of(each) for each in await service.list_of(conn, repo)]


@router.post("", status_code=201, responses={409: {"description": "It is there, or there are 20."}})
async def add_trusted_publisher(
    request: Request, conn: Conn, caller: AnyCaller, address: AnyRepo, body: PublisherRequest
) -> TrustedPublisher:
    """Let a workflow of a CI service write the repository, without a secret.

    It exchanges its ID token at `POST /oauth/token` for a token of 15 minutes.
    """
    repo = await repos.get(conn, caller, address, Right.manage)
    actor = actor_of(request, caller)
    return TrustedPublisher.of(await service.add(conn, actor, repo, body.draft()))


@router.get("/{publisher_id}")
async def get_trusted_publisher(
    conn: ReadConn, caller: AnyCaller, address: AnyRepo, publisher_id: _PublisherId
) -> TrustedPublisher:
    """Get one workflow that a repository trusts."""
    repo = await repos.get(conn, caller, address, Right.manage)
    return TrustedPublisher.of(await service.get(conn, repo, publisher_id))


@router.put("/{publisher_id}", responses={409: {"description": "The same is there already."}})
async def replace_trusted_publisher(
    request: Request,
    conn: Conn,
    caller: AnyCaller,
    address: AnyRepo,
    publisher_id: _PublisherId,
    body: PublisherRequest,
) -> TrustedPublisher:
    """Replace what a publisher is bound to; tokens that it has stop working.

    Ids that are not given are pinned anew at the next exchange.
    """
    repo = await repos.get(conn, caller, address, Right.manage)
    actor = actor_of(request, caller)
    changed = await service.change(conn, actor, repo, publisher_id, body.draft())
    return TrustedPublisher.of(changed)


@router.delete("/{publisher_id}")
async def delete_trusted_publisher(
    request: Request, conn: Conn, caller: AnyCaller, address: AnyRepo, publisher_id: _PublisherId
) -> Done:
    """Delete a publisher; tokens that it has stop working."""
    repo = await repos.get(conn, caller, address, Right.manage)
    await service.remove(conn, actor_of(request, caller), repo, publisher_id)
    return Done()
