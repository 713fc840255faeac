"""Static files and other documents that are the same for everybody: versions, caching, compression."""

import gzip
from dataclasses import field
from functools import cached_property
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from hublet.core.dataclasses import dataclass
from hublet.core.http.conditional_requests import etag_of, has_version

_MEDIA_TYPES = {
    "console.js": "text/javascript",
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "files.js": "text/javascript",
    "hublet.css": "text/css",
    "hublet.js": "text/javascript",
    "editor.js": "text/javascript",
    "inbox.js": "text/javascript",
    "threads.js": "text/javascript",
    "jobs.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "icons.svg": "image/svg+xml",
    "passkeys.js": "text/javascript",
}
# What is shorter gains nothing; what is compressed for one reader must not cost long.
_SHORTEST_COMPRESSED = 2048
_PAGE_LEVEL = 5


@dataclass(frozen=True, kw_only=True)
class Document:
    body: bytes
    media_type: str
    cache_control: str = "public, max-age=300"
    policy: str | None = None
    etag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "etag", etag_of(self.body))

    @cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.body, 9, mtime=0)


def accepts_gzip(request: Request) -> bool:
    accepted = request.headers.get("accept-encoding", "")
    codings = {part.partition(";")[0].strip(): part for part in accepted.lower().split(",")}
    return "gzip" in codings and "q=0" not in codings["gzip"].replace(" ", "").replace("q=0.", "")


def document_response(request: Request, document: Document) -> Response:
    """Respond with the document, or with 304 when the caller has it already."""
    headers = {
        "ETag": document.etag,
        "Cache-Control": document.cache_control,
        "Vary": "Accept-Encoding",
    }
    if document.policy:
        headers["Content-Security-Policy"] = document.policy
    if has_version(request, document.etag):
        return Response(status_code=304, headers=headers)
    body = document.body
    if len(body) >= _SHORTEST_COMPRESSED and accepts_gzip(request):
        headers["Content-Encoding"] = "gzip"
        body = document.compressed
    return Response(body, media_type=document.media_type, headers=headers)


def compress(request: Request, response: Response) -> Response:
    """Compress the body of a page, if it is worth it and the browser takes it."""
    body = bytes(response.body)
    response.headers.add_vary_header("Accept-Encoding")
    if len(body) >= _SHORTEST_COMPRESSED and accepts_gzip(request):
        response.body = gzip.compress(body, _PAGE_LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response


def _load(name: str) -> Document:
    return Document(
        body=(files("hublet.core") / "static" / name).read_bytes(),
        media_type=_MEDIA_TYPES[name],
        # Safe for a year, because the pages name the version of the file in its address.
        cache_control="public, max-age=31536000, immutable",
    )


STATIC_FILES = {name: _load(name) for name in _MEDIA_TYPES}


def static_url(name: str) -> str:
    version = STATIC_FILES[name].etag.strip('"')[:12]
    return f"/static/{name}?v={version}"
