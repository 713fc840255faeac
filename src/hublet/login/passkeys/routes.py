"""HTTP for passkeys: signing in with one, and one's own."""

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from hublet.core.database import Database, Reader
from hublet.core.errors import HubError
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.pages import PageRouter, page_response
from hublet.login.auth import FormFields, JustSignedIn, MaybeSession, TheAttempts, TheVisitor
from hublet.login.cookies import CHALLENGE, cookie_name, cookie_rules
from hublet.login.errors import PasskeysUnavailable
from hublet.login.forms import check_form, check_origin
from hublet.login.pages import login_page, settings_page
from hublet.login.passkeys import ceremony, service
from hublet.login.passkeys.challenges import LIFETIME
from hublet.login.records import Session
from hublet.login.routes import let_in

pages = PageRouter()
# What our script asks for: errors are JSON here, as everywhere but on pages.
script = Router(include_in_schema=False)

PAGE = "/settings/passkeys"


@script.post("/login/passkey/options")
async def begin_passkey_login(request: Request, database: Db) -> Response:
    check_origin(request)
    options, sealed = await service.begin_sign_in(database.hub)
    return _options(database, options, sealed)


@pages.post("/login/passkey")
async def sign_in_with_passkey(
    request: Request,
    database: Db,
    session: MaybeSession,
    visitor: TheVisitor,
    attempts: TheAttempts,
    form: FormFields,
) -> Response:
    check_origin(request)
    hub, answer, sealed = database.hub, form.get("answer", ""), _challenge(request)
    try:
        value = await service.sign_in(
            database, visitor, session, attempts, answer=answer, sealed=sealed
        )
    except HubError as error:
        page = login_page(hub, session, form.get("next"), message=error.message)
        return page_response(page, status=error.status, headers=error.headers)
    return let_in(hub.settings, value, form.get("next"))


@pages.get(PAGE)
async def show_passkeys(conn: ReadConn, session: JustSignedIn) -> Response:
    return page_response(await _page(conn, session))


@script.post(f"{PAGE}/options")
async def begin_passkey(
    request: Request, database: Db, session: JustSignedIn, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    options, sealed = await service.begin_adding(database, session)
    return _options(database, options, sealed)


@pages.post(PAGE)
async def add_passkey(
    request: Request,
    database: Db,
    session: JustSignedIn,
    form: FormFields,
) -> Response:
    check_form(request, form, session, PAGE)
    name, answer, sealed = form.get("name", ""), form.get("answer", ""), _challenge(request)
    try:
        await service.add(database, session, name=name, answer=answer, sealed=sealed)
    except HubError as error:
        async with database.read() as conn:
            page = await _page(conn, session, message=error.message)
        return page_response(page, status=error.status)
    return RedirectResponse(PAGE, status_code=303)


@pages.post(f"{PAGE}/{{passkey_id}}/rename")
async def rename_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await service.rename(conn, session, passkey_id, form.get("name", ""))
    return RedirectResponse(PAGE, status_code=303)


@pages.post(f"{PAGE}/{{passkey_id}}/remove")
async def remove_passkey(
    request: Request, conn: Conn, session: JustSignedIn, passkey_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await service.remove(conn, session, passkey_id)
    return RedirectResponse(PAGE, status_code=303)


async def _page(conn: Reader, session: Session, *, message: str | None = None) -> bytes:
    return settings_page(
        conn.hub,
        session,
        PAGE,
        passkeys=await service.list_of(conn, session),
        possible=ceremony.is_possible(conn.hub.settings),
        unavailable=PasskeysUnavailable().message,
        longest=service.LONGEST_NAME,
        message=message,
    )


def _challenge(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request.app.state.settings, CHALLENGE))


def _options(database: Database, options: str, sealed: str) -> Response:
    response = Response(options, media_type="application/json")
    settings = database.hub.settings
    response.set_cookie(
        cookie_name(settings, CHALLENGE),
        sealed,
        max_age=int(LIFETIME.total_seconds()),
        **cookie_rules(settings),
    )
    return response
