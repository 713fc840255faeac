"""The head of every page of somebody who is signed in."""

from hublet.core.http.pages import Frame
from hublet.core.hub import Hub
from hublet.login.forms import form_token
from hublet.login.records import Session

SIGN_OUT = "sign out"


def frame_of(hub: Hub, session: Session | None, *, current: str | None = None) -> Frame | None:
    """Return what `page.html` takes as `frame`; `current` is the path of a settings page."""
    if session is None:
        return None
    return Frame(
        user_name=session.user_name,
        sign_out_token=form_token(hub, session, SIGN_OUT),
        current=current,
    )
