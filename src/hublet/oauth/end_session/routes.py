"""HTTP for signing out where an app asks for it."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from hublet.core.database import Database
from hublet.core.http import Db
from hublet.core.http.pages import PageRouter, Templates, page_response
from hublet.login.auth import FormFields, MaybeSession, drop_session_cookie
from hublet.login.forms import check_form, form_token
from hublet.login.frames import frame_of
from hublet.login.records import Session
from hublet.login.sessions import service as sessions
from hublet.oauth.authorization.targets import forms_lead_to
from hublet.oauth.end_session.service import EndRequest, answer_to

router = PageRouter(prefix="/oauth/logout")
_templates = Templates("hublet.oauth")

_PURPOSE = "end session"


async def _asked_in_address(request: Request) -> EndRequest:
    return _asked(dict(request.query_params))


async def _asked_in_form(form: FormFields) -> EndRequest:
    return _asked(dict(form))


def _asked(parameters: dict[str, str]) -> EndRequest:
    return EndRequest(
        id_token_hint=parameters.get("id_token_hint"),
        client_id=parameters.get("client_id"),
        post_logout_redirect_uri=parameters.get("post_logout_redirect_uri"),
        state=parameters.get("state"),
    )


@router.get("")
async def end_session(
    database: Db, session: MaybeSession, asked: Annotated[EndRequest, Depends(_asked_in_address)]
) -> Response:
    return await _end(database, session, asked, confirmed=False)


@router.post("")
async def end_session_by_form(
    request: Request,
    database: Db,
    session: MaybeSession,
    form: FormFields,
    asked: Annotated[EndRequest, Depends(_asked_in_form)],
) -> Response:
    confirmed = session is not None and "form_token" in form
    if session is not None and confirmed:
        check_form(request, form, session, _PURPOSE)
    return await _end(database, session, asked, confirmed=confirmed)


async def _end(
    database: Database, session: Session | None, asked: EndRequest, *, confirmed: bool
) -> Response:
    """Sign out whom the app certainly means; ask everybody else with a button first."""
    async with database.read() as conn:
        answer = await answer_to(conn, session, asked)
    if session is not None and not (answer.certain or confirmed):
        return _question(database, session, asked, leads_to=answer.leads_to or "")
    if session is not None:
        async with database.transaction() as conn:
            await sessions.drop(conn, session)
    response = _gone(answer.leads_to)
    drop_session_cookie(response, database.hub.settings)
    return response


def _gone(leads_to: str | None) -> Response:
    if leads_to is None:
        return page_response(_templates.render("signed_out.html", frame=None))
    return RedirectResponse(leads_to, status_code=303)


def _question(
    database: Database, session: Session, asked: EndRequest, *, leads_to: str
) -> Response:
    page = _templates.render(
        "sign_out.html",
        frame=frame_of(database.hub, session),
        form_token=form_token(database.hub, session, _PURPOSE),
        user_name=session.user_name,
        asked=asked,
    )
    return page_response(page, forms_lead_to=forms_lead_to(leads_to))
