"""HTTP for Xet: access tokens, and the CAS of each repository."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hublet.core.database import Reader
from hublet.core.http import ReadConn, Router
from hublet.core.http.byte_ranges import BINARY, parse_ranges, ranges_response
from hublet.core.http.conditional_requests import ByteRange, parse_range
from hublet.core.http.exchange import allow_streaming
from hublet.repos import service as repos
from hublet.repos.auth import (
    BUCKET,
    GIT_REPO,
    GIT_TAGS,
    MOVED,
    FilesRepo,
    GitRepo,
    body_of,
    mirror_for_containers,
)
from hublet.repos.commits.pull_requests import check_upload
from hublet.repos.download_counter import count_download
from hublet.repos.errors import CasAccessRefused, CasEntryNotFound
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.xet import downloads, tokens, uploads
from hublet.repos.xet.addresses import cas_url
from hublet.repos.xet.auth import CasReader, CasWriter, RequestedCas, SignedDataAddress
from hublet.repos.xet.cas import Cas
from hublet.repos.xet.schemas import (
    FileReconstruction,
    FileReconstructions,
    FileReconstructionV2,
    ReceivedXorb,
    RegisteredShard,
    XetHash,
    XetToken,
)
from hublet.repos.xet.tokens import CasAccess, CasRight
from hublet.storage.epochs import get_epoch
from hublet.storage.object_store import xorb_key
from hublet.storage.reconstructions import AddressOf, Reconstruction, to_json_v1, to_json_v2
from hublet.storage.shards import LARGEST_SHARD
from hublet.tokens.auth import AnyCaller, MaybeCaller
from hublet.tokens.records import Caller

Responses = dict[int | str, dict[str, Any]]

_TEXT_HEADER = {"required": True, "schema": {"type": "string"}}
_TOKEN_HEADERS: Responses = {
    200: {
        "headers": {
            "X-Xet-Cas-Url": _TEXT_HEADER,
            "X-Xet-Access-Token": _TEXT_HEADER,
            "X-Xet-Token-Expiration": _TEXT_HEADER,
        }
    }
}

repo_tokens = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED | _TOKEN_HEADERS)
bucket_tokens = Router(tags=["buckets"], responses=MOVED | _TOKEN_HEADERS)


@repo_tokens.get("/xet-read-token/{rev:revision}")
async def get_xet_read_token(
    request: Request,
    response: Response,
    conn: ReadConn,
    caller: MaybeCaller,
    address: GitRepo,
    rev: str,  # noqa: ARG001 - the whole repository is one domain
) -> XetToken:
    """Get access to download the files of a repository by Xet, at any revision."""
    repo = await repos.get(conn, caller, address, Right.read)
    # Of a download through Xet this is what every client asks for once.
    count_download(request, repo.id)
    return await _token(response, conn, caller, repo, right="read")


@repo_tokens.get("/xet-write-token/{rev:revision}")
async def get_xet_write_token(
    response: Response,
    conn: ReadConn,
    caller: AnyCaller,
    address: GitRepo,
    rev: str,  # noqa: ARG001 - as above
    create_pr: Annotated[bool, Query(description="It is for a new pull request.")] = False,  # noqa: ARG001, FBT002
) -> XetToken:
    """Get access to upload files to a repository by Xet, for a commit or a pull request."""
    return await _write_token(response, conn, caller, address)


@bucket_tokens.get(f"{BUCKET}/xet-read-token")
async def get_bucket_xet_read_token(
    response: Response, conn: ReadConn, caller: MaybeCaller, address: FilesRepo
) -> XetToken:
    """Get access to download the files of a bucket by Xet."""
    repo = await repos.get(conn, caller, address, Right.read)
    return await _token(response, conn, caller, repo, right="read")


@bucket_tokens.get(f"{BUCKET}/xet-write-token")
async def get_bucket_xet_write_token(
    response: Response, conn: ReadConn, caller: AnyCaller, address: FilesRepo
) -> XetToken:
    """Get access to upload files to a bucket by Xet."""
    return await _write_token(response, conn, caller, address)


container_tokens = mirror_for_containers(bucket_tokens)


async def _write_token(
    response: Response, conn: Reader, caller: Caller, address: RepoAddress
) -> XetToken:
    repo = await repos.get(conn, caller, address, Right.see)
    await check_upload(conn, caller, repo)
    return await _token(response, conn, caller, repo, right="write")


async def _token(
    response: Response, conn: Reader, caller: Caller | None, repo: Repo, *, right: CasRight
) -> XetToken:
    token = tokens.new_token(repo, caller, right=right, epoch=await get_epoch(conn))
    answer = XetToken(
        casUrl=await cas_url(conn, repo.id),
        exp=token.expires,
        accessToken=tokens.sign_token(token, conn.hub.keys),
    )
    # One half of each public client reads the body, the other half the headers.
    response.headers["X-Xet-Cas-Url"] = answer.casUrl
    response.headers["X-Xet-Access-Token"] = answer.accessToken
    response.headers["X-Xet-Token-Expiration"] = str(answer.exp)
    return answer


_REFUSALS: Responses = {
    401: {"description": "The access token is missing, not valid, or has expired."},
    403: {"description": "The token is for another domain, or its user has no such right now."},
    404: {"description": "There is nothing of this name in the repository."},
}
_BINARY = {BINARY: {"schema": {"type": "string", "format": "binary"}}}
_TAKES_BYTES: dict[str, Any] = {"requestBody": {"required": True, "content": _BINARY}}
_UPLOAD_REFUSALS: Responses = {
    413: {"description": "It is too large."},
    429: {"description": "Too many uploads of this user are on the way."},
    503: {"description": "The hub is busy; send it again."},
}
_UNSATISFIABLE: Responses = {416: {"description": "The file ends before `Range` begins."}}

router = Router(prefix="/cas/{domain}", tags=["repos"], responses=_REFUSALS)

allow_streaming("POST", r"/cas/[^/]+/v1/xorbs/[^/]+/[^/]+")
allow_streaming("POST", r"/cas/[^/]+/v[12]/shards")

# `default` is all that clients have been seen with; an older description has the other word.
Prefix = Literal["default", "default-merkledb"]
RangeHeader = Annotated[
    str | None, Header(alias="Range", description="Such as `bytes=0-99`; the last is included.")
]
_MOST_FILES = 100
Length = Annotated[int | None, Header(alias="Content-Length", include_in_schema=False)]


@router.get(
    "/v1/chunks/{prefix}/{chunk}",
    response_class=Response,
    responses={200: {"description": "A shard, with its footer.", "content": _BINARY}},
)
async def query_xet_chunk(
    cas: RequestedCas,
    access: CasReader,
    prefix: Prefix,  # noqa: ARG001 - described
    chunk: XetHash,
) -> Response:
    """Find xorbs of this repository that hold a chunk, and what followed it.

    Only files that were uploaded to this very repository count.
    """
    found = await downloads.query_chunk(cas, access.repo.id, chunk)
    return Response(found, media_type=BINARY)


@router.post("/v1/xorb-grants/{prefix}/{xorb}")
async def request_xorb_grant(
    access: CasWriter,  # noqa: ARG001 - it counts, and so do the next
    prefix: Prefix,  # noqa: ARG001
    xorb: XetHash,  # noqa: ARG001
) -> None:
    """Answer 404: a xorb is sent to this hub itself, whether or not it has the same already."""
    raise CasEntryNotFound("This hub gives no grants: send the xorb itself.")


@router.post("/v1/xorbs/{prefix}/{xorb}", responses=_UPLOAD_REFUSALS, openapi_extra=_TAKES_BYTES)
async def upload_xorb(
    request: Request,
    cas: RequestedCas,
    access: CasWriter,
    prefix: Prefix,  # noqa: ARG001 - described
    xorb: XetHash,
    length: Length = None,
) -> ReceivedXorb:
    """Send a xorb: chunks, each behind its header, under the hash of them all."""
    uploads.check_length(length, largest=uploads.LARGEST_XORB_BODY, kind="xorb")
    was_inserted = await uploads.receive_xorb(cas, access, xorb, body_of(request))
    return ReceivedXorb(was_inserted=was_inserted)


@router.post("/v1/shards", responses=_UPLOAD_REFUSALS, openapi_extra=_TAKES_BYTES)
async def register_shard(
    request: Request, cas: RequestedCas, access: CasWriter, length: Length = None
) -> RegisteredShard:
    """Send a shard: it registers files that consist of chunks of uploaded xorbs."""
    uploads.check_length(length, largest=LARGEST_SHARD, kind="shard")
    is_new = await uploads.register_shard(cas, access, body_of(request))
    return RegisteredShard(result=1 if is_new else 0)


@router.post(
    "/v2/shards",
    response_class=Response,
    responses=_UPLOAD_REFUSALS
    | {
        200: {
            "description": "Frames, one a line, until `result` or `error`.",
            "content": {"application/x-ndjson": {}},
        }
    },
    openapi_extra=_TAKES_BYTES,
)
async def register_shard_in_stream(
    request: Request, cas: RequestedCas, access: CasWriter, length: Length = None
) -> Response:
    """Send a shard, and hear how its verification goes on.

    Frames are JSON: `validating` and `committing` now and then, at last `result`, or `error` with a
    `message`. What is registered is durable before `result`.
    """
    uploads.check_length(length, largest=LARGEST_SHARD, kind="shard")
    frames = uploads.stream_registration(cas, access, body_of(request))
    # An error before the first frame can still become a response.
    return _FrameResponse(await anext(frames), frames)


class _FrameResponse(StreamingResponse):
    """Streams frames, and ends the work behind them when the client disconnects."""

    def __init__(self, first: bytes, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(_chain(first, frames), media_type="application/x-ndjson")
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._frames):
            await super().__call__(scope, receive, send)


async def _chain(first: bytes, frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for frame in frames:
        yield frame


@router.get("/v1/reconstructions/{file}", responses=_UNSATISFIABLE)
async def get_reconstruction(
    cas: RequestedCas, access: CasReader, file: XetHash, range_header: RangeHeader = None
) -> FileReconstruction:
    """Get what makes up a file, or a range of it: chunks of xorbs, and addresses of their data.

    The addresses need no token, and work for five minutes.
    """
    found = await _reconstruct(cas, access, file, range_header)
    return FileReconstruction.model_validate(to_json_v1(found, _addresses(cas, access)))


@router.get("/v1/reconstructions")
async def get_reconstructions(
    cas: RequestedCas,
    access: CasReader,
    file_id: Annotated[list[XetHash], Query(min_length=1, max_length=_MOST_FILES)],
) -> FileReconstructions:
    """Get what makes up several files."""
    address = _addresses(cas, access)
    found = await downloads.find_reconstructions(cas, access.repo.id, file_id)
    answers = {file: to_json_v1(each, address) for file, each in found.items()}
    fetches: dict[str, list[Any]] = {}
    for answer in answers.values():
        for xorb, ranges in answer["fetch_info"].items():
            fetches.setdefault(xorb, []).extend(ranges)
    files = {file: answer["terms"] for file, answer in answers.items()}
    return FileReconstructions.model_validate({"files": files, "fetch_info": fetches})


@router.get("/v2/reconstructions/{file}", responses=_UNSATISFIABLE)
async def get_reconstruction_v2(
    cas: RequestedCas, access: CasReader, file: XetHash, range_header: RangeHeader = None
) -> FileReconstructionV2:
    """Get the same, with addresses at which several ranges can be fetched at once."""
    found = await _reconstruct(cas, access, file, range_header)
    return FileReconstructionV2.model_validate(to_json_v2(found, _addresses(cas, access)))


async def _reconstruct(
    cas: Cas, access: CasAccess, file: str, range_header: str | None
) -> Reconstruction:
    async with cas.database.read() as conn:
        content = await downloads.get_content(conn, access.repo.id, file)
        part = parse_range(range_header, size=content.size) or ByteRange(0, content.size)
        return await downloads.find_reconstruction(
            cas, conn, content, start=part.start, end=part.end
        )


def _addresses(cas: Cas, access: CasAccess) -> AddressOf:
    hub = cas.database.hub
    return downloads.data_addresses(access, keys=hub.keys, base_url=hub.settings.base_url)


telemetry_router = Router(tags=["repos"])


@telemetry_router.post("/cas/{domain}/v1/telemetry", status_code=204)
async def ignore_cas_telemetry(domain: str) -> None:
    """Take what clients tell of their transfers; nothing of it is kept."""


@telemetry_router.post("/v1/telemetry", status_code=204)
async def ignore_root_telemetry() -> None:
    """Take the same from clients that send it to the root of the CAS's host."""


data_router = Router(
    prefix="/cas/{domain}",
    tags=["repos"],
    responses={
        403: {"description": "The address has expired, was changed, or is not for these bytes."},
        404: {"description": "There is no such xorb any more."},
    },
)

_MOST_RANGES = 64


@data_router.get(
    "/v1/data/{xorb}",
    response_class=Response,
    responses={
        206: {
            "description": "The range, or several of them.",
            "content": _BINARY | {"multipart/byteranges": {"schema": {"type": "string"}}},
        },
        416: {"description": "The xorb ends before the range does."},
    },
)
async def get_xorb_data(
    cas: RequestedCas, address: SignedDataAddress, range_header: RangeHeader = None
) -> Response:
    """Get ranges of a stored xorb, at an address that a reconstruction gave out."""
    ranges = parse_ranges(range_header, most=_MOST_RANGES)
    if not all(address.covers(each.start, each.end) for each in ranges):
        raise CasAccessRefused("This address is not for these bytes.")
    key = xorb_key(address.xorb)
    found = await asyncio.to_thread(cas.store.stat, key)
    if found is None:
        raise CasEntryNotFound(downloads.NO_XORB)

    def read(part: ByteRange) -> Iterator[bytes]:
        return cas.store.pieces(key, part.start, part.end)

    path = cas.store.local_path(key)
    return ranges_response(ranges, size=found.size, path=path, read=read)


ROUTERS: tuple[Router, ...] = (
    repo_tokens,
    bucket_tokens,
    container_tokens,
    router,
    telemetry_router,
    data_router,
)
