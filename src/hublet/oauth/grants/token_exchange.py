"""Token exchange grant (RFC 8693): an app of an organization acts for a member (interface 5.4), and a
workflow of a CI service writes the repository that trusts it (interface 5.5).
"""

from datetime import timedelta
from functools import partial

from hublet.accounts.names import email_key
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor
from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import IssuedTokens, Origin
from hublet.oauth.apps import store
from hublet.oauth.clients import authenticate
from hublet.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hublet.oauth.grants.context import (
    GrantContext,
    GrantResult,
    TokenRequest,
    check_target,
)
from hublet.oauth.publishers import service as publishers
from hublet.oauth.records import ExchangeTerms, OAuthApp, Permission, Via
from hublet.oauth.scopes import confined_grants_of, format_scopes, requested_scopes
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Scope

# The interface's name, and that of the public service.
SUBJECT_TYPES = ("urn:hub:token-type:user-email", "urn:huggingface:token-type:user-email")
PUBLISHER_SUBJECT_TYPE = "urn:ietf:params:oauth:token-type:id_token"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name
MAX_SUBJECT_LENGTH = 320

EXCHANGES = RateLimit(name="exchange", quota=6000, window_seconds=300)
# An app that sends many unknown addresses is looking for people.
REFUSALS = RateLimit(name="exchange-refusals", quota=300, window_seconds=3600)


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    subject_type = request.get("subject_token_type")
    if subject_type == PUBLISHER_SUBJECT_TYPE:
        return await _redeem_id_token(context, request)
    if subject_type not in SUBJECT_TYPES:
        raise invalid_request(f"subject_token_type must be {SUBJECT_TYPES[0]}.")
    return await context.write(partial(_redeem, context.limiter, request))


async def _redeem_id_token(context: GrantContext, request: TokenRequest) -> GrantResult:
    """Exchange an ID token; it is the credential itself, so the client needs no other."""
    id_token = request.get("subject_token")
    resource = publishers.parse_resource(request.get("resource"))
    _check_types(request)
    publishers.count_exchange(context.limiter, resource, address=request.address)
    verified = await publishers.verify(context.database, id_token)
    exchanged = await context.write(
        partial(publishers.exchange, verified, resource, request.address)
    )
    publishers.refund_refusal(context.limiter, resource, address=request.address)
    issued = IssuedTokens(
        access_token=exchanged.value,
        expires_in=exchanged.seconds,
        scopes=frozenset({Scope.write_repos}),
    )
    return GrantResult(
        app=None,
        user_id=exchanged.publisher_id,
        issued=issued,
        issued_token_type=ACCESS_TOKEN_TYPE,
    )


async def _redeem(
    limiter: Limiter, request: TokenRequest, conn: Connection
) -> GrantResult | OAuthError:
    if not request.credentials.by_header:
        raise InvalidClient("Token exchange needs an Authorization header with the Basic scheme.")
    app = await authenticate(conn, request.credentials)
    if app.organization_id is None:
        raise InvalidClient("The app is not bound to an organization.")
    raise_when_exceeded(limiter.count(EXCHANGES, app.id))
    raise_when_exceeded(limiter.count(REFUSALS, app.id))
    outcome: GrantResult | OAuthError
    try:
        outcome = await _exchange(conn, app, request)
    except OAuthError as error:
        outcome = error
    if not isinstance(outcome, OAuthError) or outcome.error != "invalid_grant":
        limiter.refund(REFUSALS, app.id)
    await _write_audit(conn, app, request, outcome)
    return outcome


async def _exchange(conn: Connection, app: OAuthApp, request: TokenRequest) -> GrantResult:
    """Make all checks, then issue."""
    terms = await store.find_terms(conn, app.organization_id or "")
    if not app.token_exchange or terms is None or not terms.plan.has_service_accounts:
        raise InvalidClient("The app is not allowed to use token exchange.")
    _check_parameters(request)
    check_target(request, base_url=conn.hub.settings.base_url)
    scopes = requested_scopes(request.find("scope"), allowed=app.scopes)
    subject = request.get("subject_token")
    user_id = await store.find_member(conn, terms.organization_id, address_key=email_key(subject))
    if user_id is None:
        raise invalid_grant("The user is not found in the organization of the app.")
    return GrantResult(
        app=app,
        user_id=user_id,
        issued=await _issue(conn, app, request, terms=terms, user_id=user_id, scopes=scopes),
        organization_ids=(terms.organization_id,),
        # The token is confined to the organization, so the ID token names no other.
        omitted_scopes=frozenset({Scope.read_memberships}),
        issued_token_type=ACCESS_TOKEN_TYPE,
    )


def _check_parameters(request: TokenRequest) -> None:
    if len(request.get("subject_token")) > MAX_SUBJECT_LENGTH:
        raise invalid_request(f"subject_token must have at most {MAX_SUBJECT_LENGTH} characters.")
    _check_types(request)


def _check_types(request: TokenRequest) -> None:
    if request.find("requested_token_type") not in {None, ACCESS_TOKEN_TYPE}:
        raise invalid_request(f"requested_token_type must be {ACCESS_TOKEN_TYPE}.")
    for name in ("actor_token", "actor_token_type"):
        if request.find(name) is not None:
            raise invalid_request(f"{name} is not supported.")


async def _issue(
    conn: Connection,
    app: OAuthApp,
    request: TokenRequest,
    *,
    terms: ExchangeTerms,
    user_id: str,
    scopes: frozenset[Scope],
) -> IssuedTokens:
    organization = (terms.organization_id, terms.organization_name)
    life = timedelta(seconds=terms.seconds)
    access = await accesses.begin(
        conn,
        Permission(
            user_id=user_id,
            app_id=app.id,
            scopes=scopes,
            organization_ids=frozenset({terms.organization_id}),
        ),
        Via.exchange,
        origin=Origin(address=request.address, agent=request.agent),
        life=life,
    )
    _, value = await tokens.issue_to_app(
        conn,
        kind=TokenKind.oauth,
        user_id=user_id,
        name=app.name,
        grants=confined_grants_of(scopes, organization=organization),
        expires_at=now() + life,
        app_id=app.id,
        access_id=access.id,
        organization_id=terms.organization_id,
    )
    return IssuedTokens(access_token=value, expires_in=terms.seconds, scopes=scopes)


async def _write_audit(
    conn: Connection, app: OAuthApp, request: TokenRequest, outcome: GrantResult | OAuthError
) -> None:
    """Log every exchange for the organization, also those refused (interface 5.4, rule 6)."""
    if isinstance(outcome, OAuthError):
        scopes, result = (request.find("scope") or "")[:1000], outcome.error
    else:
        scopes, result = format_scopes(outcome.issued.scopes), "issued"
    await audit.record(
        conn,
        app.organization_id or "",
        Actor(id=None, name=app.name, address=request.address),
        "token.exchange",
        target=(request.find("subject_token") or "")[:MAX_SUBJECT_LENGTH],
        details={"client_id": app.client_id, "scopes": scopes, "result": result},
    )
