"""Logout page for apps that send people here to sign out (OpenID Connect RP-Initiated Logout 1.0)."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.http import Db
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login import sessions
from hublet.login.auth import FormFields, MaybeSession, drop_session_cookie
from hublet.login.forms import check_form, form_token, frame_of
from hublet.login.records import Session
from hublet.oauth.apps import service as apps
from hublet.oauth.id_tokens import IdTokenHint, read_hint
from hublet.oauth.redirect_uris import form_action_source, matches, with_parameters

router = PageRouter(prefix="/oauth/logout")
_templates = Templates("hublet.oauth")

_PURPOSE = "end session"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionRequest:
    """Parameters of a logout request, as the app sent them."""

    id_token_hint: str | None = None
    client_id: str | None = None
    post_logout_redirect_uri: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionOutcome:
    # The app sends an ID token of this very session, so the person need not confirm.
    certain: bool
    # Where the browser goes afterwards; None is a page of the hub.
    redirect_url: str | None


async def resolve_outcome(
    conn: Reader, session: Session | None, logout_request: EndSessionRequest
) -> EndSessionOutcome:
    hint = await read_hint(conn, logout_request.id_token_hint)
    return EndSessionOutcome(
        certain=session is not None and hint is not None and _matches_session(hint, session),
        redirect_url=await _find_redirect_url(conn, logout_request, hint),
    )


def _matches_session(hint: IdTokenHint, session: Session) -> bool:
    return hint.user_id == session.user_id and hint.session_id in {None, session.id}


async def _find_redirect_url(
    conn: Reader, logout_request: EndSessionRequest, hint: IdTokenHint | None
) -> str | None:
    """Return where the app may send people: to a redirect URI that it registered, nowhere else."""
    uri = logout_request.post_logout_redirect_uri
    client_id = hint.client_id if hint else logout_request.client_id
    if uri is None or client_id is None or logout_request.client_id not in {None, client_id}:
        return None
    app = await apps.find_app(conn, client_id)
    if app is None or not any(matches(known, uri) for known in app.redirect_uris):
        return None
    return with_parameters(uri, {"state": logout_request.state}) if logout_request.state else uri


async def _request_in_query(request: Request) -> EndSessionRequest:
    return _request_from(dict(request.query_params))


async def _request_in_form(form: FormFields) -> EndSessionRequest:
    return _request_from(dict(form))


def _request_from(parameters: dict[str, str]) -> EndSessionRequest:
    return EndSessionRequest(
        id_token_hint=parameters.get("id_token_hint"),
        client_id=parameters.get("client_id"),
        post_logout_redirect_uri=parameters.get("post_logout_redirect_uri"),
        state=parameters.get("state"),
    )


@router.get("")
async def end_session(
    database: Db,
    session: MaybeSession,
    logout_request: Annotated[EndSessionRequest, Depends(_request_in_query)],
) -> Response:
    return await _end(database, session, logout_request, confirmed=False)


@router.post("")
async def end_session_by_form(
    request: Request,
    database: Db,
    session: MaybeSession,
    form: FormFields,
    logout_request: Annotated[EndSessionRequest, Depends(_request_in_form)],
) -> Response:
    confirmed = session is not None and "form_token" in form
    if session is not None and confirmed:
        check_form(request, form, session, _PURPOSE)
    return await _end(database, session, logout_request, confirmed=confirmed)


async def _end(
    database: Database,
    session: Session | None,
    logout_request: EndSessionRequest,
    *,
    confirmed: bool,
) -> Response:
    """Sign out the person whom the ID token names; ask anybody else to confirm first."""
    async with database.read() as conn:
        outcome = await resolve_outcome(conn, session, logout_request)
    if session is not None and not (outcome.certain or confirmed):
        return _confirmation_page(
            database, session, logout_request, redirect_url=outcome.redirect_url or ""
        )
    if session is not None:
        async with database.transaction() as conn:
            await sessions.drop(conn, session)
    response = _signed_out_response(outcome.redirect_url)
    drop_session_cookie(response, database.hub.settings)
    return response


def _signed_out_response(redirect_url: str | None) -> Response:
    if redirect_url is None:
        return page_response(_templates.render("signed_out.html", frame=None))
    return RedirectResponse(redirect_url, status_code=303)


def _confirmation_page(
    database: Database, session: Session, logout_request: EndSessionRequest, *, redirect_url: str
) -> Response:
    page = _templates.render(
        "sign_out.html",
        frame=frame_of(database.hub, session),
        form_token=form_token(database.hub, session, _PURPOSE),
        user_name=session.user_name,
        logout_request=logout_request,
    )
    return page_response(page, forms_lead_to=form_action_source(redirect_url))
