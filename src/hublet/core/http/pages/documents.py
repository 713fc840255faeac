"""Finished pages and files: rendered once, then answered from memory."""

from dataclasses import field

from starlette.requests import Request
from starlette.responses import Response

from hublet.core.http.versions import etag_of, has_version
from hublet.core.light_dataclasses import dataclass

# The page brings its own script and style, so nothing else is allowed to run or load.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    body: bytes
    media_type: str
    cache_control: str = "public, max-age=300"
    policy: str | None = None
    etag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "etag", etag_of(self.body))


def answer(request: Request, document: Document) -> Response:
    """Answer with the document, or with 304 when the caller has it already."""
    headers = {"ETag": document.etag, "Cache-Control": document.cache_control}
    if document.policy:
        headers["Content-Security-Policy"] = document.policy
    if has_version(request, document.etag):
        return Response(status_code=304, headers=headers)
    return Response(document.body, media_type=document.media_type, headers=headers)
