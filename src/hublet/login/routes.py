"""HTTP for signing in and out, and for the password."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from hublet.accounts.passwords import MAX_LENGTH, MIN_LENGTH
from hublet.core.config import Settings
from hublet.core.errors import HubError
from hublet.core.http import Conn, Db
from hublet.core.http.pages import PageRouter, page_response
from hublet.login import service
from hublet.login.auth import (
    FormFields,
    MaybeSession,
    SignedIn,
    TheAttempts,
    TheVisitor,
    drop_session_cookie,
    set_session_cookie,
)
from hublet.login.errors import PasswordsDiffer
from hublet.login.forms import check_form, check_origin
from hublet.login.frames import SIGN_OUT
from hublet.login.next_paths import START, safe_path
from hublet.login.pages import login_page, logout_page, settings_page, welcome_page
from hublet.login.records import Session
from hublet.login.sessions import service as sessions

router = PageRouter()

PASSWORD = "/settings/password"  # noqa: S105 - the path of a page

_LengthRules = {"shortest": MIN_LENGTH, "longest": MAX_LENGTH}


@router.get("/login")
async def show_login(
    database: Db,
    session: MaybeSession,
    next_path: Annotated[str | None, Query(alias="next")] = None,
    again: Annotated[bool, Query()] = False,  # noqa: FBT002 - part of the address
) -> Response:
    """Ask who it is; somebody who is signed in is asked only when the address says `again`."""
    if session is not None and not again:
        return see_other(safe_path(next_path))
    return page_response(login_page(database.hub, session, next_path))


@router.post("/login")
async def sign_in(
    request: Request,
    database: Db,
    session: MaybeSession,
    visitor: TheVisitor,
    attempts: TheAttempts,
    form: FormFields,
) -> Response:
    check_origin(request)
    name, password = form.get("name", "").strip(), form.get("password", "")
    try:
        value = await service.sign_in(
            database, visitor, session, attempts, name=name, password=password
        )
    except HubError as error:
        page = login_page(database.hub, session, form.get("next"), name=name, message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    return let_in(database.hub.settings, value, form.get("next"))


@router.get("/logout")
async def show_logout(database: Db, session: MaybeSession) -> Response:
    """Ask with a button: a link alone must not sign anybody out."""
    if session is None:
        return see_other("/login")
    return page_response(logout_page(database.hub, session))


@router.post("/logout")
async def sign_out(
    request: Request, conn: Conn, session: MaybeSession, form: FormFields
) -> Response:
    if session is not None:
        check_form(request, form, session, SIGN_OUT)
        await sessions.drop(conn, session)
    response = see_other("/login")
    drop_session_cookie(response, conn.hub.settings)
    return response


@router.get("/settings")
async def show_settings() -> Response:
    return see_other(START)


@router.get("/.well-known/change-password")
async def find_password_page() -> Response:
    """Lead password managers to the form; every site that has one shows it here."""
    return see_other(PASSWORD)


@router.get(PASSWORD)
async def show_password(
    database: Db,
    session: SignedIn,
    changed: Annotated[bool, Query()] = False,  # noqa: FBT002 - part of the address
) -> Response:
    return page_response(_password_page(database, session, changed=changed))


@router.post(PASSWORD)
async def change_password_on_page(
    request: Request, database: Db, session: SignedIn, attempts: TheAttempts, form: FormFields
) -> Response:
    check_form(request, form, session, PASSWORD)
    current, new = form.get("current", ""), form.get("new", "")
    try:
        if new != form.get("repeated"):
            raise PasswordsDiffer
        value = await service.change_password(database, session, attempts, current=current, new=new)
    except HubError as error:
        page = _password_page(database, session, message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    response = see_other(f"{PASSWORD}?changed=1")
    set_session_cookie(response, database.hub.settings, value)
    return response


def _password_page(
    database: Db, session: Session, *, changed: bool = False, message: str | None = None
) -> bytes:
    return settings_page(
        database.hub, session, PASSWORD, changed=changed, message=message, **_LengthRules
    )


def see_other(path: str) -> Response:
    return RedirectResponse(path, status_code=303)


def let_in(settings: Settings, value: str, next_path: str | None) -> Response:
    """Answer somebody who has signed in: the cookie, and on to where they wanted to go."""
    path = safe_path(next_path)
    leads_to_apps = path.startswith("/oauth/")
    response = page_response(welcome_page(path)) if leads_to_apps else see_other(path)
    set_session_cookie(response, settings, value)
    return response
