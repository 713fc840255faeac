"""Xet file info: what a download says of a file, so that clients fetch it from the CAS instead."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hublet.core.database import Reader
from hublet.core.schema import Schema
from hublet.repos.records import Repo
from hublet.repos.xet.addresses import xet_headers

MEDIA_TYPE = "application/vnd.xet-fileinfo+json"


class XetFileInfo(Schema):
    """A file as the CAS knows it; `etag` is its SHA-256. The headers tell where the CAS is."""

    hash: str
    size: int
    etag: str


# For the 200 of a route that answers with a file, beside its content.
FILE_INFO_CONTENT = {
    MEDIA_TYPE: {
        "schema": {
            "type": "object",
            "required": ["hash", "size", "etag"],
            "properties": {
                "hash": {"type": "string"},
                "size": {"type": "integer"},
                "etag": {"type": "string"},
            },
        }
    }
}


async def linked_headers(
    conn: Reader,
    repo: Repo,
    *,
    xet_hash: str | None,
    sha256: str,
    size: int,
    revision: str | None = None,
) -> dict[str, str]:
    """Return the headers that lead to a file in the CAS; none until it is cut."""
    if xet_hash is None:
        return {}
    return {
        **await xet_headers(conn, repo, xet_hash, revision=revision),
        "X-Linked-Size": str(size),
        "X-Linked-Etag": f'"{sha256}"',
        "Vary": "Accept",
    }


def file_info_response(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Answer a client that wants to know of the file only, as the JavaScript client does.

    None for all others, and where the file has no headers of the CAS.
    """
    if "X-Xet-Hash" not in headers or MEDIA_TYPE not in request.headers.get("accept", ""):
        return None
    etag = headers["X-Linked-Etag"]
    info = XetFileInfo(
        hash=headers["X-Xet-Hash"], size=int(headers["X-Linked-Size"]), etag=etag.strip('"')
    )
    return JSONResponse(info.model_dump(), media_type=MEDIA_TYPE, headers={**headers, "ETag": etag})
