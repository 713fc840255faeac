"""HTTP for git itself: clone, fetch and push."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hublet.core.errors import HubError
from hublet.core.http import Db, Router
from hublet.core.http.exchange import allow_streaming
from hublet.core.http.routers import DeferredRoute
from hublet.repos.auth import MOVED, ROOT_REPO, RootRepo
from hublet.repos.errors import MalformedRequest
from hublet.repos.push import fetch, service, wire
from hublet.repos.push.fetch import GitSlots
from hublet.repos.push.wire import PacketReader
from hublet.tokens.auth import GitCaller

# The refs that a client has and wants; a hundred thousand refs are six megabytes.
LARGEST_FETCH_REQUEST = 64 << 20

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_SENTENCE = {"text/plain": {"schema": {"type": "string"}}}
_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}


class _GitRoute(DeferredRoute):
    """Route that renders errors as plain text: git shows nothing else to its user."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except HubError as error:
                if error.status < 400:  # noqa: PLR2004 - a redirect; clients do not show it
                    raise
                return _plain_text(error)
            except ClientDisconnect:
                raise MalformedRequest("it ends too early") from None

        return handle_errors


def _plain_text(error: HubError) -> Response:
    return Response(
        f"{error.message}\n",
        status_code=error.status,
        media_type="text/plain",
        headers=error.headers,
    )


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "This is no request of git's.", "content": _SENTENCE | _JSON},
    401: {"description": "A token is needed, as a password.", "content": _SENTENCE | _JSON},
    403: {"description": "The caller may not do this.", "content": _SENTENCE | _JSON},
    404: {"description": "There is no such repository.", "content": _SENTENCE | _JSON},
    413: {"description": "The request is too large.", "content": _SENTENCE | _JSON},
    503: {"description": "Too much is going on.", "content": _SENTENCE | _JSON},
}

router = Router(tags=["repos"], route_class=_GitRoute, responses=MOVED | _ERRORS)

allow_streaming("POST", r"(/[^/]+){2,3}/git-(upload|receive)-pack")

Protocol = Annotated[str | None, Header(alias="Git-Protocol", description="Such as `version=2`.")]


def _responses(*media_types: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": dict.fromkeys(media_types, _BINARY)}}


def _takes(media_type: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media_type: _BINARY}}}


@router.get(
    f"{ROOT_REPO}/info/refs",
    response_class=Response,
    responses=_responses(
        "application/x-git-upload-pack-advertisement",
        "application/x-git-receive-pack-advertisement",
    ),
)
async def discover_refs(
    request: Request,
    database: Db,
    caller: GitCaller,
    address: RootRepo,
    service_name: Annotated[
        Literal["git-upload-pack", "git-receive-pack"],
        Query(alias="service", description="Whether to fetch or to push."),
    ],
    protocol: Protocol = None,
) -> Response:
    """Begin a clone, a fetch or a push with git."""
    if service_name == "git-receive-pack":
        async with database.read() as conn:
            advertisement = await service.advertise_refs(conn, caller, address)
    else:
        folder = await service.prepare_fetch(database, caller, address)
        async with slots_of(request).one():
            advertisement = await fetch.advertisement(folder, protocol)
    return Response(advertisement, media_type=f"application/x-{service_name}-advertisement")


@router.post(
    f"{ROOT_REPO}/git-upload-pack",
    response_class=Response,
    responses=_responses("application/x-git-upload-pack-result"),
    openapi_extra=_takes("application/x-git-upload-pack-request"),
)
async def serve_fetch(
    request: Request, database: Db, caller: GitCaller, address: RootRepo, protocol: Protocol = None
) -> Response:
    """Send the objects that git asks for."""
    folder = await service.prepare_fetch(database, caller, address)
    body = wire.limit_size(_body_of(request), largest=LARGEST_FETCH_REQUEST)
    pieces = fetch.stream_pack(
        slots_of(request), folder, await wire.spool_body(body), protocol=protocol
    )
    # An error before the first piece can still become a response.
    return _PackResponse(await anext(pieces, b""), pieces)


class _PackResponse(StreamingResponse):
    """Streams the output of git, and ends git when the client disconnects."""

    def __init__(self, first: bytes, pieces: AsyncGenerator[bytes]) -> None:
        super().__init__(_chain(first, pieces), media_type="application/x-git-upload-pack-result")
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._pieces):
            await super().__call__(scope, receive, send)


async def _chain(first: bytes, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


@router.post(
    f"{ROOT_REPO}/git-receive-pack",
    response_class=Response,
    responses=_responses("application/x-git-receive-pack-result"),
    openapi_extra=_takes("application/x-git-receive-pack-request"),
)
async def receive_push(
    request: Request, database: Db, caller: GitCaller, address: RootRepo
) -> Response:
    """Take the objects that git pushes, and move branches and tags."""
    packets = PacketReader(_body_of(request))
    async with slots_of(request).one():
        report = await service.receive(database, caller, address, packets)
    return Response(report, media_type="application/x-git-receive-pack-result")


def _body_of(request: Request) -> AsyncGenerator[bytes]:
    return wire.decompress(request.stream(), request.headers.get("content-encoding"))


def slots_of(request: Request) -> GitSlots:
    state = request.app.state
    if not hasattr(state, "git_slots"):
        state.git_slots = GitSlots()
    slots: GitSlots = state.git_slots
    return slots
