"""Token exchange grant (RFC 8693): an app of an organization acts for a member (interface 5.4), and a
workflow of a CI service writes the repository that trusts it (interface 5.5).
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from hublet.accounts.names import email_key
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, AuditEntry
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.limits import RateLimit, raise_when_exceeded
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import IssuedTokens, Origin
from hublet.oauth.apps import store
from hublet.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hublet.oauth.grants.context import (
    GrantContext,
    GrantResult,
    TokenRequest,
    check_target,
)
from hublet.oauth.publishers import service as publishers
from hublet.oauth.records import Access, ExchangeTerms, OAuthApp, Permission, Via
from hublet.oauth.scopes import confined_grants_of, format_scopes, requested_scopes
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Scope, TokenRecord

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
    return await _redeem_email(context, request)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExchangeRequest:
    app: OAuthApp
    request: TokenRequest
    # As this request calls the hub; others of the bulk may call it otherwise.
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchangeable:
    """A request that keeps all rules; whether the subject is a member is not known yet."""

    app: OAuthApp
    request: TokenRequest
    terms: ExchangeTerms
    scopes: frozenset[Scope]
    address_key: str


async def _redeem_email(context: GrantContext, request: TokenRequest) -> GrantResult:
    if not request.credentials.by_header:
        raise InvalidClient("Token exchange needs an Authorization header with the Basic scheme.")
    app = await context.clients.authenticate(request.credentials)
    if app.organization_id is None:
        raise InvalidClient("The app is not bound to an organization.")
    limiter = context.limiter
    raise_when_exceeded(limiter.count(EXCHANGES, app.id))
    raise_when_exceeded(limiter.count(REFUSALS, app.id))
    base_url = context.database.hub.settings.base_url
    exchange_request = _ExchangeRequest(app=app, request=request, base_url=base_url)
    is_refused = False
    try:
        # Each is served for itself, so no two are the same.
        return await context.write_with_others(_redeem, exchange_request, key=id(request))
    except OAuthError as error:
        is_refused = error.error == "invalid_grant"
        raise
    finally:
        if not is_refused:
            limiter.refund(REFUSALS, app.id)


async def _redeem(
    conn: Connection, requests: Sequence[_ExchangeRequest]
) -> Sequence[GrantResult | OAuthError]:
    """Make all checks, issue, and log every exchange, also those refused (interface 5.4, rule 6)."""
    all_terms = await store.list_terms(conn, {each.app.id for each in requests})
    checked = [_check(each, all_terms.get(each.app.id)) for each in requests]
    issued = iter(await _issue(conn, [each for each in checked if isinstance(each, _Exchangeable)]))
    outcomes = [each if isinstance(each, OAuthError) else next(issued) for each in checked]
    await audit.record_many(conn, map(_audit_entry, requests, outcomes))
    return outcomes


def _check(
    exchange_request: _ExchangeRequest, terms: ExchangeTerms | None
) -> _Exchangeable | OAuthError:
    app, request = exchange_request.app, exchange_request.request
    if terms is None or not terms.plan.has_service_accounts:
        return InvalidClient("The app is not allowed to use token exchange.")
    try:
        _check_parameters(request)
        check_target(request, base_url=exchange_request.base_url)
        scopes = requested_scopes(request.find("scope"), allowed=app.scopes)
        address_key = email_key(request.get("subject_token"))
    except OAuthError as error:
        return error
    return _Exchangeable(
        app=app, request=request, terms=terms, scopes=scopes, address_key=address_key
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
    conn: Connection, exchangeable: Sequence[_Exchangeable]
) -> Sequence[GrantResult | OAuthError]:
    if not exchangeable:
        return []
    members = await store.list_members(
        conn,
        {each.terms.organization_id for each in exchangeable},
        address_keys={each.address_key for each in exchangeable},
    )
    begun: list[tuple[Access, tuple[TokenRecord, str]]] = []
    results: list[GrantResult | OAuthError] = []
    for each in exchangeable:
        user_id = members.get((each.terms.organization_id, each.address_key))
        if user_id is None:
            results.append(invalid_grant("The user is not found in the organization of the app."))
            continue
        access = _new_access(each, user_id)
        token = _new_token(conn.hub, each, access)
        begun.append((access, token))
        results.append(_result(each, user_id, token[1]))
    if begun:
        await access_store.add(conn, [access for access, _ in begun])
        await tokens.add_tokens(conn, [token for _, token in begun])
    return results


def _new_access(exchangeable: _Exchangeable, user_id: str) -> Access:
    terms, request = exchangeable.terms, exchangeable.request
    permission = Permission(
        user_id=user_id,
        app_id=exchangeable.app.id,
        scopes=exchangeable.scopes,
        organization_ids=frozenset({terms.organization_id}),
    )
    origin = Origin(address=request.address, agent=request.agent)
    life = timedelta(seconds=terms.seconds)
    return accesses.new_access(permission, Via.exchange, origin=origin, life=life)


def _new_token(hub: Hub, exchangeable: _Exchangeable, access: Access) -> tuple[TokenRecord, str]:
    app, terms = exchangeable.app, exchangeable.terms
    organization = (terms.organization_id, terms.organization_name)
    return tokens.new_app_token(
        hub,
        kind=TokenKind.oauth,
        user_id=access.permission.user_id,
        name=app.name,
        grants=confined_grants_of(exchangeable.scopes, organization=organization),
        expires_at=access.expires_at,
        app_id=app.id,
        access_id=access.id,
        organization_id=terms.organization_id,
    )


def _result(exchangeable: _Exchangeable, user_id: str, value: str) -> GrantResult:
    terms = exchangeable.terms
    return GrantResult(
        app=exchangeable.app,
        user_id=user_id,
        issued=IssuedTokens(
            access_token=value, expires_in=terms.seconds, scopes=exchangeable.scopes
        ),
        organization_ids=(terms.organization_id,),
        # The token is confined to the organization, so the ID token names no other.
        omitted_scopes=frozenset({Scope.read_memberships}),
        issued_token_type=ACCESS_TOKEN_TYPE,
    )


def _audit_entry(
    exchange_request: _ExchangeRequest, outcome: GrantResult | OAuthError
) -> AuditEntry:
    app, request = exchange_request.app, exchange_request.request
    if isinstance(outcome, OAuthError):
        scopes, result = (request.find("scope") or "")[:1000], outcome.error
    else:
        scopes, result = format_scopes(outcome.issued.scopes), "issued"
    return audit.new_entry(
        app.organization_id or "",
        Actor(id=None, name=app.name, address=request.address),
        "token.exchange",
        target=(request.find("subject_token") or "")[:MAX_SUBJECT_LENGTH],
        details={"client_id": app.client_id, "scopes": scopes, "result": result},
    )
