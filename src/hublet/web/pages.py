"""Answers of pages: rendered in a thread, with a version, whole or only the fragment in question."""

import asyncio
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import Request, Response
from pydantic import ValidationError

from hublet.core.database import Reader
from hublet.core.errors import Conflict, HubError, InvalidRequest, NotAllowed
from hublet.core.http.conditional_requests import etag_of, has_version
from hublet.core.http.validation import describe_problems
from hublet.core.hub import Hub, Switch
from hublet.core.pages import Frame, Navigation, Templates, enter_page, error_page, page_response
from hublet.core.paging import next_url
from hublet.core.schema import Schema
from hublet.login.auth import find_session
from hublet.login.browser import cookie_rules
from hublet.login.forms import frame_of
from hublet.notifications.inbox import service as inbox
from hublet.web.auth import PageVisit
from hublet.web.rendering.feeds import MEDIA_TYPE, Feed, render_feed

_templates = Templates("hublet.web")

# What a person can mend, or at least has to read beside what was typed.
REFUSALS = (InvalidRequest, Conflict, NotAllowed)

S = TypeVar("S", bound=Schema)

# The tokens of forms differ each time, and a page that differs in nothing else is the same.
_TOKENS = re.compile(rb'name="form_token" value="[0-9a-f]*"')
_TOAST_COOKIE = "hublet_toast"
# Back and forward cost a question, not a page.
_KEPT = {"Cache-Control": "private, no-cache", "Vary": "Cookie"}


async def frame_for(
    visit: PageVisit, conn: Reader | None = None, *, current: str | None = None
) -> Frame | None:
    """Return the head of a page for whoever looks; with a connection it says what is unread.

    `current` is the path of a page of the person's settings, which has the others beside it.
    """
    frame = frame_of(visit.hub, visit.session, current=current)
    if frame is None or visit.caller is None or conn is None:
        return frame
    return replace(frame, unread=await inbox.count_unread(conn, visit.caller.user_id))


# The pages of an organization's settings, in the order of their navigation.
_ORGANIZATION_PAGES = (
    ("profile", "Profile"),
    ("members", "Members"),
    ("resource-groups", "Resource groups"),
    ("service-accounts", "Service accounts"),
    ("tokens", "Access tokens"),
    ("network-security", "Network security"),
    ("webhooks", "Webhooks"),
    ("oauth", "OAuth applications"),
    ("audit-log", "Audit log"),
    ("scim", "SCIM"),
    ("usage", "Usage"),
)


def organization_settings_path(name: str, page: str) -> str:
    return f"/organizations/{quote(name)}/settings/{page}"


async def organization_frame(
    visit: PageVisit, name: str, page: str, conn: Reader | None = None
) -> Frame | None:
    """Return the head of a page of an organization's settings, which has the others beside it.

    `page` is the part of the address that names it, such as `members`.
    """
    frame = await frame_for(visit, conn)
    if frame is None:
        return None
    pages = tuple(
        (organization_settings_path(name, each), title) for each, title in _ORGANIZATION_PAGES
    )
    navigation = Navigation(
        label=f"Settings of {name}",
        pages=(*pages, (f"/jobs/{quote(name)}", "Jobs")),
        current=organization_settings_path(name, page),
    )
    return replace(frame, navigation=navigation)


async def render(
    visit: PageVisit,
    template: str,
    *,
    frame: Frame | None,
    status: int = 200,
    live: str | None = None,
    **values: Any,
) -> Response:
    """Answer with a page, or with the block of it that a script asks for.

    A template's blocks are its fragments: with the header `Fragment: merge-box` the answer is the
    block `merge_box` alone. `live` is the address of the page's stream (`web.live`), with the version
    that it shows; when the stream says that this changed, the script asks for the block `live`.
    """
    request = visit.request
    toast = _read_toast(visit)
    values |= {"frame": frame, "visit": visit, "toast": toast, "live": live}
    if fragment := request.headers.get("fragment"):
        block = await asyncio.to_thread(
            _templates.render_block, template, fragment.replace("-", "_"), **values
        )
        if block is not None:
            headers = {"Vary": "Cookie, Fragment", "Cache-Control": "no-store"}
            return page_response(block, status=status, headers=headers)
    body = await asyncio.to_thread(_templates.render, template, **values)
    remote_images = visit.hub.is_on(Switch.remote_images)
    # What a form answers may have a secret that is shown this once.
    if status != 200 or toast or request.method == "POST":  # noqa: PLR2004 - HTTP
        response = page_response(body, status=status, remote_images=remote_images)
        if toast:
            response.delete_cookie(_TOAST_COOKIE, **cookie_rules(visit.hub.settings))
        return response
    etag = etag_of(_TOKENS.sub(b"", body))
    is_known = has_version(request, etag)
    # Also what a browser has already needs the policy: it takes the one that came last.
    return page_response(
        b"" if is_known else body,
        status=304 if is_known else 200,
        remote_images=remote_images,
        headers={**_KEPT, "ETag": etag},
    )


def render_block(template: str, block: str, **values: Any) -> str:
    """Render one block of a template, for a stream: it is the same for everybody who looks. It blocks."""
    return (_templates.render_block(template, block, **values) or b"").decode()


async def send_feed(visit: PageVisit, feed: Feed) -> Response:
    """Answer with a feed, or say that it is the one that the reader has."""
    body = await asyncio.to_thread(render_feed, feed)
    headers = {
        "ETag": etag_of(body),
        "Cache-Control": "private, no-cache",
        "Vary": "Cookie, Authorization",
    }
    if has_version(visit.request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=MEDIA_TYPE, headers=headers)


def next_page_url(visit: PageVisit, cursor: str) -> str:
    """Return the address of the next page of a list: the same one with this cursor."""
    request = visit.request
    query = request.query_params.multi_items()
    return next_url("", path=request.scope["raw_path"], query=query, cursor=cursor)


def go_to(visit: PageVisit, path: str, *, toast: str | None = None) -> Response:
    """Send the browser on after a form; the next page says `toast` once."""
    response = Response(status_code=303, headers={"Location": path})
    if toast:
        text = urlsafe_b64encode(toast.encode()).decode()
        value = f"{text}.{_signature(visit.hub, text)}"
        response.set_cookie(_TOAST_COOKIE, value, max_age=60, **cookie_rules(visit.hub.settings))
    return response


def status_of(error: HubError) -> int:
    """Return the status of a page that shows a form again."""
    return error.status if isinstance(error, NotAllowed) else 422


def read_as(schema: type[S], **values: object) -> S:
    """Check fields of a form by the rules that the API has for them."""
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        problems = [{**each, "loc": ("form", *each["loc"])} for each in error.errors()]
        raise InvalidRequest(describe_problems(problems)) from None


def go_on(visit: PageVisit, path: str, *, toast: str) -> Response:
    """Like `go_to`, for an upload: its script is told where to go, because it cannot see a redirect."""
    response = go_to(visit, path, toast=toast)
    if "fragment" in visit.request.headers:
        response.status_code = 201
        response.headers["Content-Type"] = "text/html; charset=utf-8"
    return response


def _read_toast(visit: PageVisit) -> str | None:
    text, _, signature = visit.request.cookies.get(_TOAST_COOKIE, "").partition(".")
    if not text or not hmac.compare_digest(
        signature.encode(), _signature(visit.hub, text).encode()
    ):
        return None
    return urlsafe_b64decode(text).decode()


def _signature(hub: Hub, text: str) -> str:
    return hub.keys.digest("toast", text).hex()


async def render_error_page(request: Request, error: HubError) -> Response:
    """Render an error for people: the same page for what is private and what is not there."""
    enter_page(request)
    if "Location" in error.headers or error.status >= 500:  # noqa: PLR2004 - HTTP
        return error_page(error)
    session = await find_session(request)
    return error_page(error, frame_of(request.app.state.database.hub, session))
