"""HTTP for the apps that have access to a person's account: the page, and the same for the API."""

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.core.schema import Done
from hublet.login.auth import FormFields, SignedIn
from hublet.login.browser import browser_of
from hublet.login.forms import check_form, form_token, frame_of
from hublet.oauth.authorize import consents, store
from hublet.oauth.records import Via
from hublet.oauth.schemas import OAuthAccess
from hublet.oauth.scopes import reaches_inbox
from hublet.tokens.auth import AccountOwner, AccountReader
from hublet.tokens.records import Scope

api_router = Router(prefix="/api/settings/oauth-accesses", tags=["oauth"])
pages_router = PageRouter(prefix="/settings/connected-applications")
_templates = Templates("hublet.oauth")

_PAGE = "/settings/connected-applications"
_PURPOSE = "connected applications"
_VIA_LABELS = {
    Via.code: "Allowed",
    Via.device: "Allowed with a device code",
    Via.exchange: "Given by its organization",
}


@api_router.get("")
async def list_oauth_accesses(conn: ReadConn, caller: AccountReader) -> list[OAuthAccess]:
    """List what apps have access to the caller's account now, newest first."""
    accesses = await consents.list_connected(conn, user_id=caller.user_id)
    return [OAuthAccess.of(each, base_url=conn.hub.settings.base_url) for each in accesses]


@api_router.delete("/{access_id}")
async def revoke_oauth_access(conn: Conn, caller: AccountOwner, access_id: str) -> Done:
    """Take an access back: its tokens stop working at once, and the app has to ask again."""
    await consents.revoke_access(conn, access_id, user_id=caller.user_id)
    return Done()


@pages_router.get("")
async def show_connected_applications(conn: ReadConn, session: SignedIn) -> Response:
    """Show what apps have access to the account."""
    body = _templates.render(
        "connected.html",
        frame=frame_of(conn.hub, session, current=_PAGE),
        connected=await consents.list_connected(conn, user_id=session.user_id),
        idle=await store.list_idle_consents(conn, user_id=session.user_id),
        form_token=form_token(conn.hub, session, _PURPOSE),
        scopes=tuple(Scope),
        words=_VIA_LABELS,
        reaches_inbox=reaches_inbox,
        browser_of=browser_of,
    )
    return page_response(body)


@pages_router.post("/revoke-all")
async def revoke_all_accesses(
    request: Request, conn: Conn, session: SignedIn, form: FormFields
) -> Response:
    """Take all access back."""
    check_form(request, form, session, _PURPOSE)
    await consents.revoke_all_access(conn, user_id=session.user_id)
    return RedirectResponse(_PAGE, status_code=303)


@pages_router.post("/{app_id}/forget")
async def forget_consent(
    request: Request, conn: Conn, session: SignedIn, form: FormFields, app_id: str
) -> Response:
    """Forget what was agreed to for an app that has no access now."""
    check_form(request, form, session, _PURPOSE)
    await store.remove_consent(conn, user_id=session.user_id, app_id=app_id)
    return RedirectResponse(_PAGE, status_code=303)


@pages_router.post("/{access_id}/revoke")
async def revoke_access(
    request: Request, conn: Conn, session: SignedIn, form: FormFields, access_id: str
) -> Response:
    """Take one access back."""
    check_form(request, form, session, _PURPOSE)
    await consents.revoke_access(conn, access_id, user_id=session.user_id)
    return RedirectResponse(_PAGE, status_code=303)
