"""Responses of pages: documents and static files answered from memory, and pages made for one
person.
"""

from collections.abc import Mapping
from dataclasses import field
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from hublet.core.http.conditional_requests import etag_of, has_version
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


def document_response(request: Request, document: Document) -> Response:
    """Answer with the document, or with 304 when the caller has it already."""
    headers = {"ETag": document.etag, "Cache-Control": document.cache_control}
    if document.policy:
        headers["Content-Security-Policy"] = document.policy
    if has_version(request, document.etag):
        return Response(status_code=304, headers=headers)
    return Response(document.body, media_type=document.media_type, headers=headers)


_MEDIA_TYPES = {
    "docs.js": "text/javascript",
    "hublet.css": "text/css",
    "icon.svg": "image/svg+xml",
    "passkeys.js": "text/javascript",
}


def _load_static_file(name: str) -> Document:
    return Document(
        body=(files("hublet.core.pages") / "static" / name).read_bytes(),
        media_type=_MEDIA_TYPES[name],
        # Safe for a year, because the pages name the version of the file in its address.
        cache_control="public, max-age=31536000, immutable",
    )


STATIC_FILES = {name: _load_static_file(name) for name in _MEDIA_TYPES}


def static_url(name: str) -> str:
    version = STATIC_FILES[name].etag.strip('"')[:12]
    return f"/static/{name}?v={version}"


# Such a page may send its own forms; it runs no script but our own, and nobody may frame it.
_PERSONAL_PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action {targets}"
)


def page_response(
    body: bytes,
    *,
    status: int = 200,
    forms_lead_to: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a page that nobody keeps.

    Browsers hold a form to its policy across redirects: `forms_lead_to` names where else, beside
    this hub, a form of the page may end, as the source of a policy.
    """
    targets = f"'self' {forms_lead_to}".strip()
    return Response(
        body,
        status_code=status,
        media_type="text/html",
        headers={
            "Content-Security-Policy": _PERSONAL_PAGE_POLICY.format(targets=targets),
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(headers or {}),
        },
    )
