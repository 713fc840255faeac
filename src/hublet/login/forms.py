"""CSRF protection of forms: a token bound to the session, and the origin of the request; the frame
of a signed-in page.
"""

import hmac
from collections.abc import Mapping
from typing import Any, Protocol

from hublet.core.hub import Hub
from hublet.core.ids import random_bytes
from hublet.core.pages import SETTINGS_PAGES, Frame, Navigation
from hublet.login.errors import ForeignForm, StaleForm
from hublet.login.records import Session

# The hidden field in which every form of a session carries its token.
FIELD = "form_token"
SIGN_OUT_PURPOSE = "sign out"


class Submission(Protocol):
    """The part of a request that is checked; the framework's own type stays in the routes."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def app(self) -> Any: ...


def form_token(hub: Hub, session: Session, purpose: str) -> str:
    """Return the token for a form of this session and purpose; it fits no other.

    It looks different each time: in a compressed page, what stays the same could be guessed from
    the length of pages that repeat what somebody else sent (BREACH).
    """
    token = hub.keys.digest("form", f"{purpose} {session.digest}")
    mask = random_bytes(len(token))
    return (mask + _mask(token, mask)).hex()


def _mask(value: bytes, mask: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(value, mask, strict=True))


def _unmask(text: str) -> bytes:
    """Return the token within the text of a field; empty when it is none."""
    try:
        value = bytes.fromhex(text)
    except ValueError:
        return b""
    middle = len(value) // 2
    return _mask(value[middle:], value[:middle]) if len(value) % 2 == 0 else b""


def check_form(
    request: Submission, form: Mapping[str, str], session: Session, purpose: str
) -> None:
    """Refuse a form that another site sent, or that belongs to another session or purpose."""
    check_origin(request)
    hub: Hub = request.app.state.database.hub
    token = _unmask(form.get(FIELD, ""))
    expected = hub.keys.digests("form", f"{purpose} {session.digest}")
    if not any(hmac.compare_digest(token, each) for each in expected):
        raise StaleForm


def check_origin(request: Submission) -> None:
    """Refuse what a browser sent on behalf of another site.

    Browsers say so in headers that no page can set. A client that sends neither is no browser, and
    has no cookie that another site could abuse.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        if site not in {"same-origin", "none"}:
            raise ForeignForm
    elif origin is not None and not _is_own_origin(request, origin):
        raise ForeignForm


def _is_own_origin(request: Submission, origin: str) -> bool:
    hub: Hub = request.app.state.database.hub
    # A hub without a configured address is known by the one that the browser used.
    host = origin.partition("://")[2]
    return origin == hub.settings.base_url or host == request.headers.get("host")


def frame_of(hub: Hub, session: Session | None, *, current: str | None = None) -> Frame | None:
    """Return the `frame` of the template `page.html`; `current` is the path of a settings page."""
    if session is None:
        return None
    navigation = None
    if current is not None:
        navigation = Navigation(label="Settings", pages=SETTINGS_PAGES, current=current)
    return Frame(
        user_name=session.user_name,
        sign_out_token=form_token(hub, session, SIGN_OUT_PURPOSE),
        is_operator=session.is_admin,
        navigation=navigation,
    )
