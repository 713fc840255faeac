"""HTML of the login pages and of the settings pages about the login."""

from typing import Any

from hublet.core.hub import Hub
from hublet.core.pages import Templates
from hublet.login.browser import browser_of, safe_path
from hublet.login.forms import form_token, frame_of
from hublet.login.records import Session
from hublet.login.sign_up import is_open
from hublet.login.webauthn import is_available

_templates = Templates("hublet.login")


def login_page(
    hub: Hub,
    session: Session | None,
    next_path: str | None,
    *,
    name: str = "",
    message: str | None = None,
    changed: bool = False,
) -> bytes:
    """Render the login; `changed` says that a new password was just set."""
    return _templates.render(
        "login.html",
        changed=changed,
        frame=frame_of(hub, session),
        known=session.user_name if session else None,
        name=name,
        message=message,
        next=safe_path(next_path),
        passkeys=is_available(hub.settings),
        sign_up=is_open(hub.settings),
    )


def welcome_page(next_path: str) -> bytes:
    return _templates.render("welcome.html", frame=None, next=next_path)


def logout_page(hub: Hub, session: Session) -> bytes:
    return _templates.render("logout.html", frame=frame_of(hub, session))


def settings_page(hub: Hub, session: Session, current: str, **values: Any) -> bytes:
    """Render the template that is named like the last segment of the path."""
    return _templates.render(
        f"{current.rpartition('/')[2]}.html",
        frame=frame_of(hub, session, current=current),
        form_token=form_token(hub, session, current),
        browser_of=browser_of,
        session=session,
        **values,
    )
