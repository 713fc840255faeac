"""HTTP for the authorization request and the answer to its question."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from hublet.core.database import Database
from hublet.core.http import Db
from hublet.core.http.pages import PageRouter, Templates, page_response
from hublet.core.hub import Hub
from hublet.login.auth import FormFields, MaybeSession, SignedIn, TheVisitor
from hublet.login.errors import LoginNeeded
from hublet.login.forms import check_form, form_token
from hublet.login.frames import frame_of
from hublet.login.records import Session, Visitor
from hublet.oauth.apps.errors import UnknownApp
from hublet.oauth.apps.service import resolve_app
from hublet.oauth.authorization import service
from hublet.oauth.authorization.checks import checked, client_id_of
from hublet.oauth.authorization.errors import AuthorizationRefused, ClientIdUnknown, Returned
from hublet.oauth.authorization.parameters import Parameters
from hublet.oauth.authorization.records import AuthorizationRequest
from hublet.oauth.authorization.targets import forms_lead_to
from hublet.oauth.consents import tickets
from hublet.oauth.consents.answers import Answer, read_answer
from hublet.oauth.consents.records import Question
from hublet.oauth.redirect_uris import host_of

router = PageRouter()
_templates = Templates("hublet.oauth")

_PURPOSE = "consent"


@router.get("/oauth/authorize")
async def authorize(
    request: Request, database: Db, session: MaybeSession, visitor: TheVisitor
) -> Response:
    """Ask the person whether an app may act for them, and send the answer to the app."""
    try:
        asked = Parameters.parse(request.scope["query_string"])
        checked_request = await _check(database, asked)
        return await _answer(database, checked_request, asked, session, visitor)
    except AuthorizationRefused as error:
        return _refusal(error)
    except Returned as error:
        return _to(_told(database, error))


@router.post("/oauth/authorize")
async def authorize_by_form(request: Request) -> Response:
    """Take the same request as a form (OpenID Connect Core, 3.1.2.1).

    Browsers send no cookie with a form of another site, so the form becomes a link.
    """
    try:
        asked = Parameters.parse(await request.body())
    except AuthorizationRefused as error:
        return _refusal(error)
    return _to(f"/oauth/authorize?{asked.query()}")


async def _checked_answer(request: Request, session: SignedIn, form: FormFields) -> Answer:
    check_form(request, form, session, _PURPOSE)
    keys = request.app.state.database.hub.keys
    return read_answer(keys, form.multi_items(), purpose=_PURPOSE, session_id=session.id)


# The answer of this session to a question of ours.
OwnAnswer = Annotated[Answer, Depends(_checked_answer)]


@router.post("/oauth/consent")
async def answer_consent(
    database: Db, session: SignedIn, visitor: TheVisitor, answer: OwnAnswer
) -> Response:
    """Take the person's answer to the question of the consent page."""
    try:
        async with database.transaction() as conn:
            address = await service.decide(conn, answer, session=session, visitor=visitor)
    except AuthorizationRefused as error:
        return _refusal(error)
    except Returned as error:
        address = _told(database, error)
    return _to(address)


async def _check(database: Database, asked: Parameters) -> AuthorizationRequest:
    try:
        app = await resolve_app(database, client_id_of(asked))
    except UnknownApp as error:
        raise ClientIdUnknown(error.reason) from None
    return checked(app, asked, base_url=database.hub.settings.base_url)


async def _answer(
    database: Database,
    checked_request: AuthorizationRequest,
    asked: Parameters,
    session: Session | None,
    visitor: Visitor,
) -> Response:
    async with database.read() as reader:
        step = await service.next_step(reader, checked_request, session)
    if session is None or isinstance(step, service.SignIn):
        again = isinstance(step, service.SignIn) and step.again
        raise LoginNeeded(service.after_login(checked_request, asked), again=again)
    if isinstance(step, service.Ask):
        return _consent_page(database.hub, checked_request, asked, session, step.question)
    async with database.transaction() as conn:
        address = await service.answer_with_code(
            conn, checked_request, step.permission, session=session, visitor=visitor
        )
    return _to(address)


def _consent_page(
    hub: Hub,
    checked_request: AuthorizationRequest,
    asked: Parameters,
    session: Session,
    question: Question,
) -> Response:
    redirect_uri = checked_request.target.redirect_uri
    ticket = tickets.new_ticket(subject=asked.query(), revision=checked_request.app.revision)
    body = _templates.render(
        "consent.html",
        frame=frame_of(hub, session),
        question=question,
        redirect_host=host_of(redirect_uri),
        redirect_uri=redirect_uri.partition("?")[0],
        ticket=tickets.seal(hub.keys, ticket, purpose=_PURPOSE, session_id=session.id),
        form_token=form_token(hub, session, _PURPOSE),
    )
    return page_response(body, forms_lead_to=forms_lead_to(redirect_uri))


def _refusal(error: AuthorizationRefused) -> Response:
    body = _templates.render("refused.html", frame=None, error=error)
    return page_response(body, status=error.status)


def _told(database: Database, error: Returned) -> str:
    return service.answer_with_error(error, base_url=database.hub.settings.base_url)


def _to(address: str) -> Response:
    # RFC 9700, 4.12: 307 would send the form, with all that is in it, to the app.
    return RedirectResponse(address, status_code=303)
