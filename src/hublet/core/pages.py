"""HTML pages: one layout and style for all; the templates of a page stay in its feature."""

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from markupsafe import Markup, escape

from hublet.core.clock import wire
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.http.conditional_requests import etag_of, has_version
from hublet.core.http.routers import DeferredRoute, Router
from hublet.core.http.validation import describe_problems

if TYPE_CHECKING:
    from jinja2 import Environment

# The page brings its own script and style, so nothing else is allowed to run or load.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
# A page for one person may send its own forms; it runs no script but our own, and nobody may frame it.
_PERSONAL_PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action {targets}"
)
_MEDIA_TYPES = {
    "docs.js": "text/javascript",
    "hublet.css": "text/css",
    "icon.svg": "image/svg+xml",
    "passkeys.js": "text/javascript",
}
# The pages of the settings, in the order of their navigation.
SETTINGS_PAGES = (
    ("/settings/sessions", "Sessions"),
    ("/settings/password", "Password"),
    ("/settings/passkeys", "Passkeys"),
    ("/settings/applications", "Applications"),
    ("/settings/connected-applications", "Connected applications"),
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
    """Respond with the document, or with 304 when the caller has it already."""
    headers = {"ETag": document.etag, "Cache-Control": document.cache_control}
    if document.policy:
        headers["Content-Security-Policy"] = document.policy
    if has_version(request, document.etag):
        return Response(status_code=304, headers=headers)
    return Response(document.body, media_type=document.media_type, headers=headers)


def _load_static_file(name: str) -> Document:
    return Document(
        body=(files("hublet.core") / "static" / name).read_bytes(),
        media_type=_MEDIA_TYPES[name],
        # Safe for a year, because the pages name the version of the file in its address.
        cache_control="public, max-age=31536000, immutable",
    )


STATIC_FILES = {name: _load_static_file(name) for name in _MEDIA_TYPES}


def static_url(name: str) -> str:
    version = STATIC_FILES[name].etag.strip('"')[:12]
    return f"/static/{name}?v={version}"


def page_response(
    body: bytes,
    *,
    status: int = 200,
    forms_lead_to: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Respond with a page that no cache keeps.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Head of a page for a signed-in user; `page.html` takes it as `frame`."""

    user_name: str
    # For the button that signs out.
    sign_out_token: str
    # The path of the settings page that is shown; None on pages that are no settings.
    current: str | None = None


def _inline(text: str) -> Markup:
    """Show `code` between backticks as code; everything else is plain text."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _paragraphs(text: str) -> Markup:
    return Markup("\n").join(
        Markup("<p>{}</p>").format(_inline(part.strip())) for part in text.split("\n\n") if part
    )


def _time_element(value: datetime) -> Markup:
    """Show a time to the minute; the page does not know where its reader lives."""
    text = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}">{}</time>').format(wire(value), text)


class Templates:
    """The templates of one package, which extend the layout of all pages."""

    def __init__(self, package: str) -> None:
        self._package = package

    @cached_property
    def _environment(self) -> "Environment":
        from jinja2 import (  # noqa: PLC0415 - a start needs no page
            ChoiceLoader,
            Environment,
            PackageLoader,
            StrictUndefined,
        )

        environment = Environment(
            loader=ChoiceLoader([PackageLoader(self._package), PackageLoader(__package__ or "")]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "inline": _inline,
            "moment": _time_element,
            "paragraphs": _paragraphs,
        }
        environment.globals |= {"static_url": static_url, "settings_pages": SETTINGS_PAGES}
        return environment

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode()


_templates = Templates(__package__ or "")


class PageRoute(DeferredRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def respond(request: Request) -> Response:
            try:
                return await handle(request)
            except HubError as error:
                return error_page(error)
            except RequestValidationError as error:
                return error_page(InvalidRequest(describe_problems(error.errors())))

        return respond


class PageRouter(Router):
    """Routes of pages: not in the description of the API; their errors are pages, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=PageRoute, include_in_schema=False, **options)


def error_page(error: HubError) -> Response:
    """Render an error as a page; one that redirects, such as to the login, has none."""
    if "Location" in error.headers:
        return Response(status_code=error.status, headers=error.headers)
    body = _templates.render("error.html", message=error.message, frame=None)
    return page_response(body, status=error.status, headers=error.headers)
