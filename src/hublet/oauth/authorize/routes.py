"""HTTP for the authorization endpoint and its consent page."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from hublet.core.database import Database
from hublet.core.http import Db
from hublet.core.hub import Hub
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login.auth import CurrentVisitor, FormFields, MaybeSession, SignedIn
from hublet.login.errors import LoginNeeded
from hublet.login.forms import check_form, form_token, frame_of
from hublet.login.records import Session, Visitor
from hublet.oauth.authorize import consents, service
from hublet.oauth.authorize.checks import AuthorizationParameters, check_request, client_id_of
from hublet.oauth.authorize.consents import ConsentDecision, read_decision
from hublet.oauth.authorize.records import AuthorizationRequest, ConsentQuestion
from hublet.oauth.clients import resolve_app
from hublet.oauth.errors import AuthorizationRefused, ClientIdUnknown, RedirectedError, UnknownApp
from hublet.oauth.redirect_uris import form_action_source, host_of

router = PageRouter()
_templates = Templates("hublet.oauth")

_PURPOSE = "consent"


@router.get("/oauth/authorize")
async def authorize(
    request: Request, database: Db, session: MaybeSession, visitor: CurrentVisitor
) -> Response:
    """Ask the person whether an app may act for them, and send the answer to the app."""
    try:
        parameters = AuthorizationParameters.parse(request.scope["query_string"])
        checked_request = await _resolve_request(database, parameters)
        return await _respond(database, checked_request, parameters, session, visitor)
    except AuthorizationRefused as error:
        return _refusal_page(error)
    except RedirectedError as error:
        return _redirect(_error_url(database, error))


@router.post("/oauth/authorize")
async def authorize_by_form(request: Request) -> Response:
    """Take the same request as a form (OpenID Connect Core, 3.1.2.1).

    Browsers send no cookie with a form of another site, so the form becomes a link.
    """
    try:
        parameters = AuthorizationParameters.parse(await request.body())
    except AuthorizationRefused as error:
        return _refusal_page(error)
    return _redirect(f"/oauth/authorize?{parameters.query()}")


def decision_reader(purpose: str) -> Callable[..., Awaitable[ConsentDecision]]:
    """Return a dependency that reads the session's own decision from a form of this purpose."""

    async def read_own_decision(
        request: Request, session: SignedIn, form: FormFields
    ) -> ConsentDecision:
        check_form(request, form, session, purpose)
        keys = request.app.state.database.hub.keys
        return read_decision(keys, form.multi_items(), purpose=purpose, session_id=session.id)

    return read_own_decision


# The answer of this session to the question of the consent page.
OwnDecision = Annotated[ConsentDecision, Depends(decision_reader(_PURPOSE))]


@router.post("/oauth/consent")
async def answer_consent(
    database: Db, session: SignedIn, visitor: CurrentVisitor, decision: OwnDecision
) -> Response:
    """Take the person's answer to the question of the consent page."""
    try:
        async with database.transaction() as conn:
            address = await service.decide(conn, decision, session=session, visitor=visitor)
    except AuthorizationRefused as error:
        return _refusal_page(error)
    except RedirectedError as error:
        address = _error_url(database, error)
    return _redirect(address)


async def _resolve_request(
    database: Database, parameters: AuthorizationParameters
) -> AuthorizationRequest:
    try:
        app = await resolve_app(database, client_id_of(parameters))
    except UnknownApp as error:
        raise ClientIdUnknown(error.reason) from None
    return check_request(app, parameters, base_url=database.hub.settings.base_url)


async def _respond(
    database: Database,
    checked_request: AuthorizationRequest,
    parameters: AuthorizationParameters,
    session: Session | None,
    visitor: Visitor,
) -> Response:
    async with database.read() as reader:
        step = await service.next_step(reader, checked_request, session)
    if session is None or isinstance(step, service.SignInStep):
        again = isinstance(step, service.SignInStep) and step.again
        raise LoginNeeded(service.url_after_login(checked_request, parameters), again=again)
    if isinstance(step, service.ConsentStep):
        return _consent_page(database.hub, checked_request, parameters, session, step.question)
    async with database.transaction() as conn:
        address = await service.respond_with_code(
            conn, checked_request, step.permission, session=session, visitor=visitor
        )
    return _redirect(address)


def _consent_page(
    hub: Hub,
    checked_request: AuthorizationRequest,
    parameters: AuthorizationParameters,
    session: Session,
    question: ConsentQuestion,
) -> Response:
    redirect_uri = checked_request.target.redirect_uri
    ticket = consents.new_ticket(subject=parameters.query(), revision=checked_request.app.revision)
    body = _templates.render(
        "consent.html",
        frame=frame_of(hub, session),
        question=question,
        redirect_host=host_of(redirect_uri),
        redirect_uri=redirect_uri.partition("?")[0],
        ticket=consents.seal_ticket(hub.keys, ticket, purpose=_PURPOSE, session_id=session.id),
        form_token=form_token(hub, session, _PURPOSE),
    )
    return page_response(body, forms_lead_to=form_action_source(redirect_uri))


def _refusal_page(error: AuthorizationRefused) -> Response:
    body = _templates.render("refused.html", frame=None, error=error)
    return page_response(body, status=error.status)


def _error_url(database: Database, error: RedirectedError) -> str:
    return service.respond_with_error(error, base_url=database.hub.settings.base_url)


def _redirect(address: str) -> Response:
    # RFC 9700, 4.12: 307 would send the form, with all that is in it, to the app.
    return RedirectResponse(address, status_code=303)
