"""HTTP for signing in and out, for the password, for one's own sessions, and for passkeys."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from hublet.accounts.passwords import MAX_LENGTH, MIN_LENGTH
from hublet.core.config import Settings
from hublet.core.database import Database, Reader
from hublet.core.errors import HubError
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.pages import PageRouter, page_response
from hublet.core.schema import Done
from hublet.login import passkeys, service, sessions, webauthn
from hublet.login.auth import (
    CurrentAttempts,
    CurrentVisitor,
    FormFields,
    JustSignedIn,
    MaybeSession,
    SignedIn,
    drop_session_cookie,
    set_session_cookie,
)
from hublet.login.browser import CHALLENGE_COOKIE, cookie_name, cookie_rules, safe_path
from hublet.login.errors import PasskeysUnavailable, PasswordsDiffer
from hublet.login.forms import SIGN_OUT_PURPOSE, check_form, check_origin
from hublet.login.pages import login_page, logout_page, settings_page, welcome_page
from hublet.login.records import Session
from hublet.login.schemas import BrowserSession, ChangePassword
from hublet.login.webauthn import CHALLENGE_LIFE
from hublet.tokens.auth import AccountOwner

router = PageRouter()
password_router = Router(prefix="/api/settings/password", tags=["users"])
sessions_router = Router(prefix="/api/settings/sessions", tags=["users"])
# Called by the script of the passkey pages: errors are JSON here, as everywhere but on pages.
passkey_options_router = Router(include_in_schema=False)

ROUTERS: tuple[Router, ...] = (router, password_router, sessions_router, passkey_options_router)

PASSWORD_PAGE = "/settings/password"  # noqa: S105 - the path of a page
SESSIONS_PAGE = "/settings/sessions"
PASSKEYS_PAGE = "/settings/passkeys"

_LENGTH_RULES = {"shortest": MIN_LENGTH, "longest": MAX_LENGTH}


@router.get("/login")
async def show_login(
    database: Db,
    session: MaybeSession,
    next_path: Annotated[str | None, Query(alias="next")] = None,
    again: Annotated[bool, Query()] = False,  # noqa: FBT002 - part of the address
    changed: Annotated[bool, Query()] = False,  # noqa: FBT002 - part of the address
) -> Response:
    """Ask who it is; a person who is signed in is asked only when the address says `again`."""
    if session is not None and not again:
        return _see_other(safe_path(next_path))
    return page_response(login_page(database.hub, session, next_path, changed=changed))


@router.post("/login")
async def sign_in(
    request: Request,
    database: Db,
    session: MaybeSession,
    visitor: CurrentVisitor,
    attempts: CurrentAttempts,
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
    return _signed_in_response(database.hub.settings, value, form.get("next"))


@router.get("/logout")
async def show_logout(database: Db, session: MaybeSession) -> Response:
    """Ask with a button: a link alone must not sign anybody out."""
    if session is None:
        return _see_other("/login")
    return page_response(logout_page(database.hub, session))


@router.post("/logout")
async def sign_out(
    request: Request, conn: Conn, session: MaybeSession, form: FormFields
) -> Response:
    if session is not None:
        check_form(request, form, session, SIGN_OUT_PURPOSE)
        await sessions.drop(conn, session)
    response = _see_other("/login")
    drop_session_cookie(response, conn.hub.settings)
    return response


@router.get("/settings")
async def show_settings() -> Response:
    return _see_other("/settings/profile")


@router.get("/.well-known/change-password")
async def find_password_page() -> Response:
    """Lead password managers to the form; every site that has one shows it here."""
    return _see_other(PASSWORD_PAGE)


@router.get(PASSWORD_PAGE)
async def show_password(
    database: Db,
    session: SignedIn,
    changed: Annotated[bool, Query()] = False,  # noqa: FBT002 - part of the address
) -> Response:
    return page_response(_password_page(database, session, changed=changed))


@router.post(PASSWORD_PAGE)
async def change_password_on_page(
    request: Request, database: Db, session: SignedIn, attempts: CurrentAttempts, form: FormFields
) -> Response:
    check_form(request, form, session, PASSWORD_PAGE)
    current, new = form.get("current", ""), form.get("new", "")
    try:
        if new != form.get("repeated"):
            raise PasswordsDiffer
        value = await service.change_password(database, session, attempts, current=current, new=new)
    except HubError as error:
        page = _password_page(database, session, message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    response = _see_other(f"{PASSWORD_PAGE}?changed=1")
    set_session_cookie(response, database.hub.settings, value)
    return response


def _password_page(
    database: Db, session: Session, *, changed: bool = False, message: str | None = None
) -> bytes:
    return settings_page(
        database.hub, session, PASSWORD_PAGE, changed=changed, message=message, **_LENGTH_RULES
    )


def _see_other(path: str) -> Response:
    return RedirectResponse(path, status_code=303)


def _signed_in_response(settings: Settings, value: str, next_path: str | None) -> Response:
    """Return the response to a login: the session's cookie, and a redirect to the requested page.

    A login for an app goes on from a page: the policy of the form would forbid a redirect there.
    """
    path = safe_path(next_path)
    is_app_request = path.startswith("/oauth/")
    response = page_response(welcome_page(path)) if is_app_request else _see_other(path)
    set_session_cookie(response, settings, value)
    return response


@router.get(SESSIONS_PAGE)
async def show_sessions(conn: ReadConn, session: SignedIn) -> Response:
    own = await sessions.list_of(conn, session.user_id)
    return page_response(settings_page(conn.hub, session, SESSIONS_PAGE, sessions=own))


@router.post(f"{SESSIONS_PAGE}/end-others")
async def end_other_sessions(
    request: Request, conn: Conn, session: SignedIn, form: FormFields
) -> Response:
    check_form(request, form, session, SESSIONS_PAGE)
    await sessions.end_all(conn, user_id=session.user_id, except_for=session)
    return _see_other(SESSIONS_PAGE)


@router.post(f"{SESSIONS_PAGE}/{{session_id}}/end")
async def end_session_on_page(
    request: Request, conn: Conn, session: SignedIn, session_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, SESSIONS_PAGE)
    await sessions.end(conn, session_id, user_id=session.user_id)
    return _see_other(SESSIONS_PAGE)


@password_router.put("")
async def change_password(
    database: Db, caller: AccountOwner, attempts: CurrentAttempts, body: ChangePassword
) -> Done:
    """Set another password; the present one is needed as well.

    Wrong ones count as failed log-ins to the account, which are limited.
    """
    await service.change_password_by_token(
        database, caller.user_id, attempts, current=body.currentPassword, new=body.newPassword
    )
    return Done()


@sessions_router.get("")
async def list_sessions(conn: ReadConn, caller: AccountOwner) -> list[BrowserSession]:
    """List the browsers in which the caller is signed in, the one used last first."""
    return [BrowserSession.of(each) for each in await sessions.list_of(conn, caller.user_id)]


@sessions_router.delete("")
async def end_sessions(conn: Conn, caller: AccountOwner) -> Done:
    """Sign the caller out of every browser; tokens keep working."""
    await sessions.end_all(conn, user_id=caller.user_id)
    return Done()


@sessions_router.delete("/{session_id}")
async def end_session(conn: Conn, caller: AccountOwner, session_id: str) -> Done:
    """Sign the caller out of one browser."""
    await sessions.end(conn, session_id, user_id=caller.user_id)
    return Done()


@passkey_options_router.post("/login/passkey/options")
async def begin_passkey_login(request: Request, database: Db) -> Response:
    check_origin(request)
    options, sealed = await passkeys.begin_sign_in(database.hub)
    return _options_response(database, options, sealed)


@router.post("/login/passkey")
async def sign_in_with_passkey(
    request: Request,
    database: Db,
    session: MaybeSession,
    visitor: CurrentVisitor,
    attempts: CurrentAttempts,
    form: FormFields,
) -> Response:
    check_origin(request)
    hub, sealed = database.hub, _challenge_cookie(request)
    try:
        value = await passkeys.sign_in(
            database, visitor, session, attempts, response=form.get("answer", ""), sealed=sealed
        )
    except HubError as error:
        page = login_page(hub, session, form.get("next"), message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    return _signed_in_response(hub.settings, value, form.get("next"))


@router.get(PASSKEYS_PAGE)
async def show_passkeys(conn: ReadConn, session: JustSignedIn) -> Response:
    return page_response(await _passkeys_page(conn, session))


@passkey_options_router.post(f"{PASSKEYS_PAGE}/options")
async def begin_passkey(
    request: Request, database: Db, session: JustSignedIn, form: FormFields
) -> Response:
    check_form(request, form, session, PASSKEYS_PAGE)
    options, sealed = await passkeys.begin_registration(database, session)
    return _options_response(database, options, sealed)


@router.post(PASSKEYS_PAGE)
async def add_passkey(
    request: Request,
    database: Db,
    session: JustSignedIn,
    form: FormFields,
) -> Response:
    check_form(request, form, session, PASSKEYS_PAGE)
    name, response, sealed = (
        form.get("name", ""),
        form.get("answer", ""),
        _challenge_cookie(request),
    )
    try:
        await passkeys.add(database, session, name=name, response=response, sealed=sealed)
    except HubError as error:
        async with database.read() as conn:
            page = await _passkeys_page(conn, session, message=error.message)
        return page_response(page, status=error.status)
    return _see_other(PASSKEYS_PAGE)


@router.post(f"{PASSKEYS_PAGE}/{{passkey_id}}/rename")
async def rename_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PASSKEYS_PAGE)
    await passkeys.rename(conn, session, passkey_id, form.get("name", ""))
    return _see_other(PASSKEYS_PAGE)


@router.post(f"{PASSKEYS_PAGE}/{{passkey_id}}/remove")
async def remove_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PASSKEYS_PAGE)
    await passkeys.remove(conn, session, passkey_id)
    return _see_other(PASSKEYS_PAGE)


async def _passkeys_page(conn: Reader, session: Session, *, message: str | None = None) -> bytes:
    return settings_page(
        conn.hub,
        session,
        PASSKEYS_PAGE,
        passkeys=await passkeys.list_of(conn, session),
        possible=webauthn.is_available(conn.hub.settings),
        unavailable=PasskeysUnavailable().message,
        longest=passkeys.MAX_NAME_LENGTH,
        message=message,
    )


def _challenge_cookie(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request.app.state.settings, CHALLENGE_COOKIE))


def _options_response(database: Database, options: str, sealed: str) -> Response:
    response = Response(options, media_type="application/json")
    settings = database.hub.settings
    response.set_cookie(
        cookie_name(settings, CHALLENGE_COOKIE),
        sealed,
        max_age=int(CHALLENGE_LIFE.total_seconds()),
        **cookie_rules(settings),
    )
    return response
