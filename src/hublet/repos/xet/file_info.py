"""Xet file info: what a client asks for that would rather download a file from the CAS."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hublet.core.http.file_responses import FILE_RESPONSES

MEDIA_TYPE = "application/vnd.xet-fileinfo+json"

_SCHEMA = {
    "type": "object",
    "required": ["hash", "etag", "size"],
    "properties": {
        "hash": {"type": "string"},
        "etag": {"type": "string"},
        "size": {"type": "integer"},
    },
}
_FILE: dict[str, Any] = FILE_RESPONSES[200]
# For the `responses` of a route that answers with a file, or with this.
DOWNLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    **FILE_RESPONSES,
    200: {**_FILE, "content": {**_FILE["content"], MEDIA_TYPE: {"schema": _SCHEMA}}},
}


def linked_headers(*, sha256: str, size: int) -> dict[str, str]:
    """Return the headers of a file whose content lies in the storage."""
    return {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(size)}


def file_info_response(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Answer a client that asks, as the JavaScript client does, how to download through Xet.

    None for all others, and where the headers of the file do not lead to the CAS.
    """
    if "X-Xet-Hash" not in headers or MEDIA_TYPE not in request.headers.get("accept", ""):
        return None
    etag = headers["X-Linked-Etag"]
    info = {"hash": headers["X-Xet-Hash"], "etag": etag, "size": int(headers["X-Linked-Size"])}
    cache = {"Cache-Control": "private, no-store", "Vary": "Accept"}
    return JSONResponse(info, headers={**headers, **cache, "ETag": etag}, media_type=MEDIA_TYPE)
