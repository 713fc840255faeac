"""What comes next for an authorization request: a login, a question, or a code."""

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.login.records import Session, Visitor
from hublet.oauth.apps import service as apps
from hublet.oauth.authorization.checks import checked, client_id_of
from hublet.oauth.authorization.errors import Returned
from hublet.oauth.authorization.parameters import Parameters
from hublet.oauth.authorization.records import AuthorizationRequest, Prompt
from hublet.oauth.authorization.targets import Target
from hublet.oauth.codes import service as codes
from hublet.oauth.codes.records import NewCode
from hublet.oauth.consents import service as consents
from hublet.oauth.consents.answers import Answer
from hublet.oauth.consents.records import Question
from hublet.oauth.records import Permission
from hublet.oauth.redirect_uris import with_parameters

_LONGEST_AGENT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    # Although somebody is signed in.
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The person agreed before, so there is nothing to ask."""

    permission: Permission


async def next_step(
    conn: Reader, request: AuthorizationRequest, session: Session | None
) -> SignIn | Ask | Allowed:
    if session is None or _is_too_old(request, session):
        _check_may_ask(request, "login_required", "The person has to sign in.")
        return SignIn(again=session is not None)
    app, user_id = request.app, session.user_id
    known = await consents.find(conn, user_id=user_id, app_id=app.id)
    asked = await consents.of_own(conn, request.organization_ids, user_id=user_id)
    if known and known.covers(app, request.scopes, asked) and Prompt.consent not in request.prompts:
        chosen = await consents.of_own(conn, known.organization_ids, user_id=user_id)
        return Allowed(permission=permission_of(request, session, chosen))
    _check_may_ask(request, "consent_required", "The person has to agree.")
    question = await consents.question(
        conn,
        app,
        user_id=user_id,
        scopes=request.scopes,
        organization_ids=request.organization_ids,
        known=known,
    )
    return Ask(question=question)


def permission_of(
    request: AuthorizationRequest, session: Session, organization_ids: frozenset[str]
) -> Permission:
    return Permission(
        user_id=session.user_id,
        app_id=request.app.id,
        scopes=request.scopes,
        organization_ids=organization_ids,
    )


def _is_too_old(request: AuthorizationRequest, session: Session) -> bool:
    """Tell whether the person has to show once more who they are, or to choose an account."""
    if request.signed_in_after is not None:
        return session.authenticated_at.timestamp() < request.signed_in_after
    if request.prompts & {Prompt.login, Prompt.select_account}:
        return True
    age = (now() - session.authenticated_at).total_seconds()
    return request.max_age is not None and age > request.max_age


def _check_may_ask(request: AuthorizationRequest, error: str, description: str) -> None:
    if Prompt.none in request.prompts:
        raise Returned(error, description, target=request.target)


def after_login(request: AuthorizationRequest, asked: Parameters) -> str:
    """Return where the login leads back to: the same request, which then needs no other login."""
    prompts = request.prompts - {Prompt.login, Prompt.select_account}
    added = {"prompt": " ".join(sorted(prompts))} if prompts else {}
    if request.max_age is not None or prompts != request.prompts:
        added["signed_in_after"] = str(int(now().timestamp()))
    query = asked.query(without={"prompt", "max_age", "signed_in_after"}, adding=added)
    return f"/oauth/authorize?{query}"


async def decide(conn: Connection, answer: Answer, *, session: Session, visitor: Visitor) -> str:
    """Return where the browser goes after an answer: to the app, or back to the question.

    The request is checked once more as the page had it; when the app has changed since, or the
    answer is not the first one, it is asked again.
    """
    ticket = answer.ticket
    asked = Parameters.parse(ticket.subject.encode())
    app = await apps.find_app(conn, client_id_of(asked))
    is_first = await consents.is_first_answer(conn, ticket)
    if app is None or app.revision != ticket.revision or not is_first:
        return f"/oauth/authorize?{ticket.subject}"
    base_url = conn.hub.settings.base_url
    request = checked(app, asked, base_url=base_url)
    if answer.organization_ids is None:
        no = Returned("access_denied", "The person said no.", target=request.target)
        return answer_with_error(no, base_url=base_url)
    chosen = await consents.of_own(conn, answer.organization_ids, user_id=session.user_id)
    permission = permission_of(request, session, chosen)
    await consents.remember(conn, permission, revision=app.revision)
    return await answer_with_code(conn, request, permission, session=session, visitor=visitor)


async def answer_with_code(
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
        NewCode(
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
    return _address(request.target, {"code": code}, conn.hub.settings.base_url)


def answer_with_error(error: Returned, *, base_url: str) -> str:
    told = {"error": error.error, "error_description": error.description}
    return _address(error.target, told, base_url)


def _address(target: Target, told: dict[str, str], base_url: str) -> str:
    if target.state is not None:
        told["state"] = target.state
    # RFC 9207: an app that knows several servers sees which one answers.
    told["iss"] = base_url
    return with_parameters(target.redirect_uri, told)
