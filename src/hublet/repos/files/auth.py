"""Parameters of buckets and containers as annotated types: page, condition and upload."""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Query, Request
from starlette.responses import Response

from hublet.core.http.paging import Page
from hublet.core.paging import InvalidCursor, read_cursor
from hublet.core.schema import Moment
from hublet.repos.files.records import Condition, Upload
from hublet.repos.files.uploads import announced_digests, check_media_type, guess_media_type
from hublet.repos.names import check_path

MAX_LIMIT = 1000


async def _tree_page(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = MAX_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    # A path may have characters that a cursor cannot carry, so it is written encoded.
    after = unquote(read_cursor(cursor)) if cursor else ""
    if "\x00" in after:
        raise InvalidCursor
    return Page(after=after, limit=limit, _request=request, _response=response)


TreePage = Annotated[Page, Depends(_tree_page)]


IfMatch = Annotated[str | None, Header(description="Versions of which the file must be one.")]
IfNoneMatch = Annotated[
    str | None, Header(description="Versions that the file must not be; `*`: there must be none.")
]


async def _condition(if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> Condition:
    return Condition(is_one_of=_versions(if_match), is_none_of=_versions(if_none_match))


def _versions(header: str | None) -> frozenset[str] | None:
    if header is None:
        return None
    return frozenset(tag.strip().removeprefix("W/").strip('"') for tag in header.split(","))


RequestedCondition = Annotated[Condition, Depends(_condition)]


async def _upload(
    request: Request,
    path: str,
    condition: RequestedCondition,
    x_file_modified_at: Annotated[Moment | None, Header()] = None,
    x_content_sha256: Annotated[str | None, Header(pattern="^[0-9A-Fa-f]{64}$")] = None,
    digest: Annotated[str | None, Header(description="As in `sha-256=<base64>`.")] = None,
) -> Upload:
    check_path(path)
    check_media_type(media_type := request.headers.get("content-type") or guess_media_type(path))
    return Upload(
        path=path,
        media_type=media_type,
        size=_length(request),
        modified_at=x_file_modified_at,
        digests=announced_digests(x_content_sha256=x_content_sha256, digest=digest),
        condition=condition,
    )


def _length(request: Request) -> int | None:
    """Return how long the body is said to be, if at all."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else None


RequestedUpload = Annotated[Upload, Depends(_upload)]
