"""Who sits in front of the browser, as a type that a page's route names.

Only pages look at the cookie. The API knows bearer tokens alone, so no other site can use it
through somebody's browser.
"""

import re
from datetime import timedelta
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Request, Response
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException

from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.http.exchange import exchange_of
from hublet.login.attempts import Attempts
from hublet.login.cookies import SESSION, cookie_name, cookie_rules
from hublet.login.errors import LoginNeeded, UnreadableForm
from hublet.login.next_paths import safe_path
from hublet.login.records import Session, Visitor
from hublet.login.sessions import service

__all__ = [
    "FormFields",
    "JustSignedIn",
    "MaybeSession",
    "Session",
    "SignedIn",
    "TheAttempts",
    "TheVisitor",
    "drop_session_cookie",
    "set_session_cookie",
]

# Who changes how an account is signed in to has shown who they are within this time.
FRESH = timedelta(minutes=15)

_MOST_FIELDS = 100


async def find_session(request: Request) -> Session | None:
    settings: Settings = request.app.state.settings
    value = request.cookies.get(cookie_name(settings, SESSION))
    if not value:
        return None
    session = await service.find(request.app.state.database, value)
    if session is not None:
        exchange_of(request).identify(session.user_name)
    return session


MaybeSession = Annotated[Session | None, Depends(find_session)]


async def need_session(request: Request, session: MaybeSession) -> Session:
    if session is None:
        raise LoginNeeded(_path_of(request))
    return session


# A browser without a session is sent to the login page, and comes back from there.
SignedIn = Annotated[Session, Depends(need_session)]


async def need_fresh_session(request: Request, session: SignedIn) -> Session:
    if now() - session.authenticated_at > FRESH:
        raise LoginNeeded(_path_of(request), again=True)
    return session


# Somebody who signed in some time ago is asked once more.
JustSignedIn = Annotated[Session, Depends(need_fresh_session)]


def _path_of(request: Request) -> str:
    """Return where to come back to: a form is not sent again, its page is shown instead."""
    if request.method != "GET":
        shown = re.fullmatch(r"https?://[^/]+(/.*)", request.headers.get("referer", ""))
        return safe_path(shown[1] if shown else None)
    query = request.url.query
    return quote(request.url.path) + (f"?{query}" if query else "")


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form; `getlist` has all values of one that is there more than once."""
    try:
        form = await request.form(max_files=0, max_fields=_MOST_FIELDS)
    except HTTPException:
        raise UnreadableForm from None
    fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    # PostgreSQL cannot store U+0000, so no engine takes it.
    if any("\x00" in value for _, value in fields):
        raise UnreadableForm
    return ImmutableMultiDict(fields)


FormFields = Annotated[ImmutableMultiDict[str, str], Depends(read_form)]


async def see_visitor(request: Request) -> Visitor:
    return Visitor(
        address=exchange_of(request).address, agent=request.headers.get("user-agent") or None
    )


TheVisitor = Annotated[Visitor, Depends(see_visitor)]


async def count_attempts(request: Request) -> Attempts:
    state = request.app.state
    return Attempts(state.limiter, state.settings, address=exchange_of(request).address)


TheAttempts = Annotated[Attempts, Depends(count_attempts)]


def set_session_cookie(response: Response, settings: Settings, value: str) -> None:
    """Keep a session in the browser for as long as it can last."""
    response.set_cookie(
        cookie_name(settings, SESSION),
        value,
        max_age=settings.login.session_days * 86400,
        **cookie_rules(settings),
    )


def drop_session_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(cookie_name(settings, SESSION), **cookie_rules(settings))
