"""HTML pages: one layout and style for all; the templates of a page stay in its feature."""

import re
import zlib
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request, Response
from markupsafe import Markup, escape

import hublet
from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.http.routers import DeferredRoute, Router
from hublet.core.http.static_files import compress, static_url
from hublet.core.hub import Announcement

if TYPE_CHECKING:
    from jinja2 import Environment

# The page brings its own script and style, so nothing else may run or load; nobody may frame it.
# It may send its own forms.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src {pictures}; "
    "media-src 'self'; connect-src 'self'; frame-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action {targets}"
)
_PICTURES = "'self' data:"
# For pages without forms.
PAGE_POLICY = _POLICY.format(targets="'none'", pictures=_PICTURES)

THEME_COOKIE = "hublet_theme"
THEMES = ("light", "dark")

# The pages of a person's settings, in the order of their navigation.
SETTINGS_PAGES = (
    ("/settings/profile", "Profile"),
    ("/settings/account", "Account"),
    ("/settings/notifications", "Notifications"),
    ("/settings/tokens", "Access tokens"),
    ("/settings/keys", "SSH keys"),
    ("/settings/webhooks", "Webhooks"),
    ("/settings/password", "Password"),
    ("/settings/passkeys", "Passkeys"),
    ("/settings/sessions", "Sessions"),
    ("/settings/connected-applications", "Connected applications"),
    ("/settings/applications", "Applications"),
    ("/settings/mcp", "MCP"),
)


def page_response(
    body: bytes,
    *,
    status: int = 200,
    forms_lead_to: str = "",
    remote_images: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Respond with a page that no cache keeps.

    Browsers hold a form to its policy across redirects: `forms_lead_to` names where else, beside
    this hub, a form of the page may end, as the source of a policy. With `remote_images`, pictures
    may come from other sites.
    """
    targets = f"'self' {forms_lead_to}".strip()
    pictures = f"{_PICTURES} https:" if remote_images else _PICTURES
    return Response(
        body,
        status_code=status,
        media_type="text/html",
        headers={
            "Content-Security-Policy": _POLICY.format(targets=targets, pictures=pictures),
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(headers or {}),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    """Pages that belong together, such as all settings: a list of links at the side of each."""

    # What they are, for who hears the page: `Settings of analytical`.
    label: str
    # Their paths and titles, in order.
    pages: tuple[tuple[str, str], ...]
    # The path of the one that is shown.
    current: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Head of a page for a signed-in user; `page.html` takes it as `frame`."""

    user_name: str
    # For the button that signs out.
    sign_out_token: str
    # Whether the menu leads to the administration of the hub.
    is_operator: bool = False
    # The pages beside this one; most pages have none.
    navigation: Navigation | None = None
    # How many notifications are unread; pages that do not know leave it to the script.
    unread: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What the layout takes from the request, whoever looks at the page."""

    # Path and query, to come back to after the login.
    url: str = "/"
    # One of THEMES; None leaves it to the reader's system.
    theme: str | None = None
    # All there are, whether they concern this reader or not.
    announcements: tuple[Announcement, ...] = ()


_NO_REQUEST = PageRequest()
_page_request: ContextVar[PageRequest] = ContextVar("page_request", default=_NO_REQUEST)


def enter_page(request: Request) -> None:
    """Note what the layout needs of this request, for whatever renders a page within it."""
    theme = request.cookies.get(THEME_COOKIE)
    query = request.url.query
    url = quote(request.url.path) + (f"?{query}" if query else "")
    database: Database = request.app.state.database
    _page_request.set(
        PageRequest(
            url=url,
            theme=theme if theme in THEMES else None,
            announcements=database.hub.site.state.announcements,
        )
    )


def _list_announcements(frame: Frame | None) -> list[Announcement]:
    """Return what stands above the page, now and for this reader."""
    moment = now()
    return [
        each
        for each in _page_request.get().announcements
        if each.until > moment and (frame is not None or not each.for_signed_in)
    ]


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
    """Show a time to the minute; the script turns it into the reader's own."""
    return Markup('<time datetime="{}">{}</time>').format(wire(value), _utc_text(value))


def _utc_text(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


_AGES = (
    (31_557_600, "year"),
    (2_629_800, "month"),
    (86_400, "day"),
    (3600, "hour"),
    (60, "minute"),
)


def age_of(value: datetime, *, at: datetime | None = None) -> str:
    """Return a time in words: `2 days ago`, `in 4 minutes`, `just now`."""
    seconds = int(((at or now()) - value).total_seconds())
    for length, unit in _AGES:
        if abs(seconds) >= length:
            count = plural(abs(seconds) // length, unit)
            return f"{count} ago" if seconds > 0 else f"in {count}"
    return "just now"


def _ago_element(value: datetime) -> Markup:
    """Show a time as an age, with the exact one as a title; the script keeps both in step."""
    html = Markup('<time datetime="{}" title="{}" data-ago>{}</time>')
    return html.format(wire(value), _utc_text(value), age_of(value))


def plural(count: int, word: str, words: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
# What is shown as 1000 of a unit is 1 of the next.
_ROUNDS_UP = 999.5


def bytes_text(size: float) -> str:
    """Write a size as people read it: `14.5 GB`, in powers of 1000 and three digits."""
    unit = 0
    while size >= _ROUNDS_UP and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def latency_text(seconds: float) -> str:
    """Write a short time as people read it: `93.1 ms`, `1.25 s`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


_COUNT_UNITS = ("", " k", " M", " B", " T")


def count_text(count: float) -> str:
    """Write a large number as people say it: `7.24 B`, in three digits."""
    unit = 0
    while count >= _ROUNDS_UP and unit < len(_COUNT_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g}{_COUNT_UNITS[unit]}"


@lru_cache(maxsize=256)
def _icon(name: str) -> Markup:
    """Return one of the icons of `icons.svg`: a page has hundreds."""
    html = Markup('<svg class="i" aria-hidden="true"><use href="{}#{}"/></svg>')
    return html.format(static_url("icons.svg"), name)


def _hue_of(name: str) -> int:
    """Return the number of the colour in which a name's initials are shown."""
    return zlib.crc32(name.casefold().encode()) % 12 + 1


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
            "ago": _ago_element,
            "bytes": bytes_text,
            "count": count_text,
            "hue": _hue_of,
            "inline": _inline,
            "moment": _time_element,
            "paragraphs": _paragraphs,
            "plural": plural,
        }
        environment.globals |= {
            "icon": _icon,
            "announcements": _list_announcements,
            "page_request": _page_request.get,
            "static_url": static_url,
            "version": hublet.__version__,
        }
        return environment

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode()

    def render_block(self, template: str, block: str, **values: Any) -> bytes | None:
        """Render one block of a template alone; None if it has no such block."""
        found = self._environment.get_template(template)
        if block not in found.blocks:
            return None
        return "".join(found.blocks[block](found.new_context(values))).encode()


_templates = Templates(__package__ or "")


class PageRoute(DeferredRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def respond(request: Request) -> Response:
            enter_page(request)
            response = await handle(request)
            return compress(request, response) if response.media_type == "text/html" else response

        return respond


class PageRouter(Router):
    """Routes of pages: not in the description of the API. Their errors are pages for browsers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=PageRoute, include_in_schema=False, **options)


_TITLES = {
    403: "This is not for you",
    404: "Nothing here",
    429: "Too many requests",
    500: "That went wrong",
}


def error_page(error: HubError, frame: Frame | None = None) -> Response:
    """Render an error as a page; one that redirects, such as to the login, has none."""
    if "Location" in error.headers:
        return Response(status_code=error.status, headers=error.headers)
    # A browser has no token to send: to people, what needs one looks like what is not there.
    status = 404 if error.status == 401 else error.status  # noqa: PLR2004 - HTTP
    headers = {name: value for name, value in error.headers.items() if name != "WWW-Authenticate"}
    body = _templates.render(
        "error.html",
        title=_TITLES.get(status, "That did not work"),
        message=error.message,
        status=status,
        frame=frame,
    )
    return page_response(body, status=status, headers=headers)
