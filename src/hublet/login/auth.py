"""Authentication of pages, as types that a route names: session, visitor, form.

Only pages read the cookie. The API accepts bearer tokens alone, so no other site can use it through
a person's browser.
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
from hublet.login import sessions
from hublet.login.browser import SESSION_COOKIE, cookie_name, cookie_rules, safe_path
from hublet.login.errors import LoginNeeded, UnreadableForm
from hublet.login.records import Session, Visitor
from hublet.login.service import LoginAttempts

__all__ = [
    "CurrentAttempts",
    "CurrentVisitor",
    "FormFields",
    "JustSignedIn",
    "MaybeSession",
    "Session",
    "SignedIn",
    "drop_session_cookie",
    "return_path",
    "set_session_cookie",
]

# A change of how an account is signed in to needs a login within this time.
FRESH_LOGIN = timedelta(minutes=15)

_MAX_FIELDS = 100


async def find_session(request: Request) -> Session | None:
    settings: Settings = request.app.state.settings
    value = request.cookies.get(cookie_name(settings, SESSION_COOKIE))
    if not value:
        return None
    session = await sessions.find(request.app.state.database, value)
    if session is not None:
        exchange_of(request).identify(session.user_name)
    return session


MaybeSession = Annotated[Session | None, Depends(find_session)]


async def need_session(request: Request, session: MaybeSession) -> Session:
    if session is None:
        raise LoginNeeded(return_path(request))
    return session


# A browser without a session is sent to the login page, and comes back from there.
SignedIn = Annotated[Session, Depends(need_session)]


async def need_fresh_session(request: Request, session: SignedIn) -> Session:
    if now() - session.authenticated_at > FRESH_LOGIN:
        raise LoginNeeded(return_path(request), again=True)
    return session


# A person who signed in longer ago has to sign in again.
JustSignedIn = Annotated[Session, Depends(need_fresh_session)]


def return_path(request: Request) -> str:
    """Return where to come back to: a form is not sent again, its page opens instead."""
    if request.method != "GET":
        referer = re.fullmatch(r"https?://[^/]+(/.*)", request.headers.get("referer", ""))
        return safe_path(referer[1] if referer else None)
    query = request.url.query
    return quote(request.url.path) + (f"?{query}" if query else "")


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form; `getlist` has all values of a repeated one."""
    try:
        form = await request.form(max_files=0, max_fields=_MAX_FIELDS)
    except HTTPException:
        raise UnreadableForm from None
    fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    # PostgreSQL cannot store U+0000, so no engine takes it.
    if any("\x00" in value for _, value in fields):
        raise UnreadableForm
    return ImmutableMultiDict(fields)


FormFields = Annotated[ImmutableMultiDict[str, str], Depends(read_form)]


async def visitor_of(request: Request) -> Visitor:
    return Visitor(
        address=exchange_of(request).address, agent=request.headers.get("user-agent") or None
    )


CurrentVisitor = Annotated[Visitor, Depends(visitor_of)]


async def attempts_of(request: Request) -> LoginAttempts:
    state = request.app.state
    return LoginAttempts(state.limiter, state.settings, address=exchange_of(request).address)


CurrentAttempts = Annotated[LoginAttempts, Depends(attempts_of)]


def set_session_cookie(response: Response, settings: Settings, value: str) -> None:
    """Set the cookie of a session, for as long as the session can last."""
    response.set_cookie(
        cookie_name(settings, SESSION_COOKIE),
        value,
        max_age=settings.login.session_days * 86400,
        **cookie_rules(settings),
    )


def drop_session_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(cookie_name(settings, SESSION_COOKIE), **cookie_rules(settings))
