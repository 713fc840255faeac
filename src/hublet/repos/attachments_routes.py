"""HTTP for attachments."""

from typing import Annotated, Any

from fastapi import Header, Request
from starlette.responses import PlainTextResponse, Response

from hublet.core.http import Db, Router
from hublet.core.http.exchange import allow_streaming
from hublet.core.http.file_responses import FILE_RESPONSES, blob_response
from hublet.repos import attachments
from hublet.repos.attachments import SUFFIXES, check_media_type
from hublet.repos.blobs import blob_path
from hublet.repos.files.auth import body_of
from hublet.tokens.auth import DiscussionWriter

router = Router(tags=["discussions"])

allow_streaming("POST", "/uploads")

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TAKES_A_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": dict.fromkeys(SUFFIXES, _BINARY),
    }
}


@router.post("/uploads", response_class=PlainTextResponse, openapi_extra=_TAKES_A_FILE)
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


@router.get("/uploads/{name}", response_class=Response, responses=FILE_RESPONSES)
async def get_attachment(request: Request, database: Db, name: str) -> Response:
    """Get what somebody uploaded to show in a text; no token is needed."""
    async with database.read() as conn:
        attachment = await attachments.get(conn, name)
    return await blob_response(
        request,
        blob_path(database.hub.settings.database.data_dir, attachment.sha256),
        size=attachment.size,
        etag=attachment.sha256,
        file_name=attachment.name,
        media_type=attachment.media_type,
        # The content at an address never changes.
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
