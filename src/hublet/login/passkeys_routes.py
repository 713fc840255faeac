"""HTTP for passkeys: signing in with one, and managing one's own."""

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from hublet.core.database import Database, Reader
from hublet.core.errors import HubError
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.pages import PageRouter, page_response
from hublet.login import passkeys, webauthn
from hublet.login.auth import (
    CurrentAttempts,
    CurrentVisitor,
    FormFields,
    JustSignedIn,
    MaybeSession,
)
from hublet.login.browser import CHALLENGE_COOKIE, cookie_name, cookie_rules
from hublet.login.errors import PasskeysUnavailable
from hublet.login.forms import check_form, check_origin
from hublet.login.pages import login_page, settings_page
from hublet.login.records import Session
from hublet.login.routes import signed_in_response
from hublet.login.webauthn import CHALLENGE_LIFE

pages_router = PageRouter()
# What our script asks for: errors are JSON here, as everywhere but on pages.
script_router = Router(include_in_schema=False)

PAGE = "/settings/passkeys"


@script_router.post("/login/passkey/options")
async def begin_passkey_login(request: Request, database: Db) -> Response:
    check_origin(request)
    options, sealed = await passkeys.begin_sign_in(database.hub)
    return _options_response(database, options, sealed)


@pages_router.post("/login/passkey")
async def sign_in_with_passkey(
    request: Request,
    database: Db,
    session: MaybeSession,
    visitor: CurrentVisitor,
    attempts: CurrentAttempts,
    form: FormFields,
) -> Response:
    check_origin(request)
    hub, answer, sealed = database.hub, form.get("answer", ""), _challenge_cookie(request)
    try:
        value = await passkeys.sign_in(
            database, visitor, session, attempts, answer=answer, sealed=sealed
        )
    except HubError as error:
        page = login_page(hub, session, form.get("next"), message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    return signed_in_response(hub.settings, value, form.get("next"))


@pages_router.get(PAGE)
async def show_passkeys(conn: ReadConn, session: JustSignedIn) -> Response:
    return page_response(await _page(conn, session))


@script_router.post(f"{PAGE}/options")
async def begin_passkey(
    request: Request, database: Db, session: JustSignedIn, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    options, sealed = await passkeys.begin_registration(database, session)
    return _options_response(database, options, sealed)


@pages_router.post(PAGE)
async def add_passkey(
    request: Request,
    database: Db,
    session: JustSignedIn,
    form: FormFields,
) -> Response:
    check_form(request, form, session, PAGE)
    name, answer, sealed = form.get("name", ""), form.get("answer", ""), _challenge_cookie(request)
    try:
        await passkeys.add(database, session, name=name, answer=answer, sealed=sealed)
    except HubError as error:
        async with database.read() as conn:
            page = await _page(conn, session, message=error.message)
        return page_response(page, status=error.status)
    return RedirectResponse(PAGE, status_code=303)


@pages_router.post(f"{PAGE}/{{passkey_id}}/rename")
async def rename_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await passkeys.rename(conn, session, passkey_id, form.get("name", ""))
    return RedirectResponse(PAGE, status_code=303)


@pages_router.post(f"{PAGE}/{{passkey_id}}/remove")
async def remove_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await passkeys.remove(conn, session, passkey_id)
    return RedirectResponse(PAGE, status_code=303)


async def _page(conn: Reader, session: Session, *, message: str | None = None) -> bytes:
    return settings_page(
        conn.hub,
        session,
        PAGE,
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
