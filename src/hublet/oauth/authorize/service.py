"""Rules of the authorization endpoint: the next step of a request (login, consent question or code)
and its response to the app.
"""

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.login.records import Session, Visitor
from hublet.oauth.apps import service as apps
from hublet.oauth.authorize import codes, consents, store
from hublet.oauth.authorize.checks import AuthorizationParameters, check_request, client_id_of
from hublet.oauth.authorize.consents import ConsentDecision
from hublet.oauth.authorize.records import (
    AuthorizationRequest,
    ConsentQuestion,
    NewAuthorizationCode,
    Prompt,
)
from hublet.oauth.errors import RedirectedError
from hublet.oauth.records import Permission, RedirectTarget
from hublet.oauth.redirect_uris import with_parameters

_LONGEST_AGENT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInStep:
    # A session exists, but the request wants a new login.
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentStep:
    question: ConsentQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStep:
    """The person agreed before, so the app gets a code at once."""

    permission: Permission


async def next_step(
    conn: Reader, request: AuthorizationRequest, session: Session | None
) -> SignInStep | ConsentStep | CodeStep:
    if session is None or _needs_new_login(request, session):
        _check_prompt_allowed(request, "login_required", "The person has to sign in.")
        return SignInStep(again=session is not None)
    app, user_id = request.app, session.user_id
    known = await store.find_consent(conn, user_id=user_id, app_id=app.id)
    requested = await consents.own_organizations(conn, request.organization_ids, user_id=user_id)
    covered = known is not None and known.covers(app, request.scopes, requested)
    if known is not None and covered and Prompt.consent not in request.prompts:
        chosen = await consents.own_organizations(conn, known.organization_ids, user_id=user_id)
        return CodeStep(permission=permission_of(request, session, chosen))
    _check_prompt_allowed(request, "consent_required", "The person has to agree.")
    question = await consents.build_question(
        conn,
        app,
        user_id=user_id,
        scopes=request.scopes,
        organization_ids=request.organization_ids,
        known=known,
    )
    return ConsentStep(question=question)


def permission_of(
    request: AuthorizationRequest, session: Session, organization_ids: frozenset[str]
) -> Permission:
    return Permission(
        user_id=session.user_id,
        app_id=request.app.id,
        scopes=request.scopes,
        organization_ids=organization_ids,
        resource=request.resource,
    )


def _needs_new_login(request: AuthorizationRequest, session: Session) -> bool:
    """Tell whether the person has to sign in again, or to choose an account."""
    if request.signed_in_after is not None:
        return session.authenticated_at.timestamp() < request.signed_in_after
    if request.prompts & {Prompt.login, Prompt.select_account}:
        return True
    age = (now() - session.authenticated_at).total_seconds()
    return request.max_age is not None and age > request.max_age


def _check_prompt_allowed(request: AuthorizationRequest, error: str, description: str) -> None:
    if Prompt.none in request.prompts:
        raise RedirectedError(error, description, target=request.target)


def url_after_login(request: AuthorizationRequest, parameters: AuthorizationParameters) -> str:
    """Return where the login leads back to: the same request, which then needs no second login."""
    prompts = request.prompts - {Prompt.login, Prompt.select_account}
    added = {"prompt": " ".join(sorted(prompts))} if prompts else {}
    if request.max_age is not None or prompts != request.prompts:
        added["signed_in_after"] = str(int(now().timestamp()))
    query = parameters.query(without={"prompt", "max_age", "signed_in_after"}, adding=added)
    return f"/oauth/authorize?{query}"


async def decide(
    conn: Connection, decision: ConsentDecision, *, session: Session, visitor: Visitor
) -> str:
    """Carry out a decision; return where the browser goes: to the app, or back to the question.

    The request is checked once more as the page had it. The question is asked again when the app
    has changed since, or when it was answered before.
    """
    ticket = decision.ticket
    parameters = AuthorizationParameters.parse(ticket.subject.encode())
    app = await apps.find_app(conn, client_id_of(parameters))
    is_first = await consents.is_first_answer(conn, ticket)
    if app is None or app.revision != ticket.revision or not is_first:
        return f"/oauth/authorize?{ticket.subject}"
    base_url = conn.hub.settings.base_url
    request = check_request(app, parameters, base_url=base_url)
    if decision.organization_ids is None:
        denied = RedirectedError("access_denied", "The person said no.", target=request.target)
        return respond_with_error(denied, base_url=base_url)
    chosen = await consents.own_organizations(
        conn, decision.organization_ids, user_id=session.user_id
    )
    permission = permission_of(request, session, chosen)
    await consents.save(conn, permission, revision=app.revision)
    return await respond_with_code(conn, request, permission, session=session, visitor=visitor)


async def respond_with_code(
    conn: Connection,
    request: AuthorizationRequest,
    permission: Permission,
    *,
    session: Session,
    visitor: Visitor,
) -> str:
    """Issue a code, and return the address that brings it to the app."""
    code = await codes.issue(
        conn,
        NewAuthorizationCode(
            permission=permission,
            redirect_uri=request.target.redirect_uri,
            challenge=request.challenge,
            nonce=request.nonce,
            session_id=session.id,
            authenticated_at=session.authenticated_at,
            address=visitor.address,
            agent=visitor.agent and visitor.agent[:_LONGEST_AGENT],
        ),
    )
    return _response_url(request.target, {"code": code}, conn.hub.settings.base_url)


def respond_with_error(error: RedirectedError, *, base_url: str) -> str:
    """Return the address that brings an error to the app."""
    parameters = {"error": error.error, "error_description": error.description}
    return _response_url(error.target, parameters, base_url)


def _response_url(target: RedirectTarget, parameters: dict[str, str], base_url: str) -> str:
    if target.state is not None:
        parameters["state"] = target.state
    # RFC 9207: an app that knows several servers sees which one responds.
    parameters["iss"] = base_url
    return with_parameters(target.redirect_uri, parameters)
