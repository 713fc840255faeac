"""CSRF protection of forms: a token bound to the session, and the origin of the request; the frame
of a signed-in page.
"""

import hmac
from collections.abc import Mapping
from typing import Any, Protocol

from hublet.core.hub import Hub
from hublet.core.pages import Frame
from hublet.login.errors import ForeignForm, StaleForm
from hublet.login.records import Session

# The hidden field in which every form of a session carries its token.
FIELD = "form_token"


class Submission(Protocol):
    """What is looked at of a request; the framework's own type stays at the rim."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def app(self) -> Any: ...


def form_token(hub: Hub, session: Session, purpose: str) -> str:
    """Return what a form of this session carries: it fits no other session and no other purpose."""
    return hub.keys.digest("form", f"{purpose} {session.digest}").hex()


def check_form(
    request: Submission, form: Mapping[str, str], session: Session, purpose: str
) -> None:
    """Refuse a form that another site sent, or that belongs to another session or purpose."""
    check_origin(request)
    hub: Hub = request.app.state.database.hub
    given = form.get(FIELD, "").encode()
    expected = hub.keys.digests("form", f"{purpose} {session.digest}")
    if not any(hmac.compare_digest(given, each.hex().encode()) for each in expected):
        raise StaleForm


def check_origin(request: Submission) -> None:
    """Refuse what a browser sent on behalf of another site.

    Browsers say so themselves, in headers that no page can set. Without either of them it is not
    a browser, and has no cookie that somebody else could abuse.
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


SIGN_OUT_PURPOSE = "sign out"


def frame_of(hub: Hub, session: Session | None, *, current: str | None = None) -> Frame | None:
    """Return what `page.html` takes as `frame`; `current` is the path of a settings page."""
    if session is None:
        return None
    return Frame(
        user_name=session.user_name,
        sign_out_token=form_token(hub, session, SIGN_OUT_PURPOSE),
        current=current,
    )
