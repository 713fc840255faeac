"""HTTP for one's own sessions: a page, and the same in the API."""

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.pages import PageRouter, page_response
from hublet.core.schema import Done
from hublet.login.auth import FormFields, SignedIn
from hublet.login.forms import check_form
from hublet.login.pages import settings_page
from hublet.login.sessions import service
from hublet.login.sessions.schemas import BrowserSession
from hublet.tokens.auth import AccountOwner

pages = PageRouter(prefix="/settings/sessions")
api = Router(prefix="/api/settings/sessions", tags=["users"])

PAGE = "/settings/sessions"


@pages.get("")
async def show_sessions(conn: ReadConn, session: SignedIn) -> Response:
    found = await service.list_of(conn, session.user_id)
    return page_response(settings_page(conn.hub, session, PAGE, sessions=found))


@pages.post("/end-others")
async def end_other_sessions(
    request: Request, conn: Conn, session: SignedIn, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await service.end_all(conn, user_id=session.user_id, but=session)
    return RedirectResponse(PAGE, status_code=303)


@pages.post("/{session_id}/end")
async def end_session_on_page(
    request: Request, conn: Conn, session: SignedIn, session_id: str, form: FormFields
) -> Response:
    check_form(request, form, session, PAGE)
    await service.end(conn, session_id, user_id=session.user_id)
    return RedirectResponse(PAGE, status_code=303)


@api.get("")
async def list_sessions(conn: ReadConn, caller: AccountOwner) -> list[BrowserSession]:
    """List the browsers in which the caller is signed in, the one used last first."""
    return [BrowserSession.of(each) for each in await service.list_of(conn, caller.user_id)]


@api.delete("")
async def end_sessions(conn: Conn, caller: AccountOwner) -> Done:
    """Sign the caller out of every browser; tokens keep working."""
    await service.end_all(conn, user_id=caller.user_id)
    return Done()


@api.delete("/{session_id}")
async def end_session(conn: Conn, caller: AccountOwner, session_id: str) -> Done:
    """Sign the caller out of one browser."""
    await service.end(conn, session_id, user_id=caller.user_id)
    return Done()
