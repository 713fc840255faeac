"""Authentication: the caller as an annotated type that a route names.

A route asks for the caller by the scope it needs (`WebhookManager`), by the right to act
for the account itself (`AccountOwner`, `InboxOwner`), or by neither (`AnyCaller`, `MaybeCaller`).
"""

import re
from base64 import b64decode
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes
from fastapi.security.http import HTTPAuthorizationCredentials

from hublet.accounts.records import Actor
from hublet.core.http.exchange import exchange_of
from hublet.tokens.cache import CallerCache
from hublet.tokens.errors import (
    AdministratorNeeded,
    FullTokenNeeded,
    GitTokenNeeded,
    InvalidGitToken,
    InvalidToken,
    ScopeNeeded,
    TokenNeeded,
    WriteTokenNeeded,
)
from hublet.tokens.records import Caller, Scope, TokenRole

_bearer = HTTPBearer(auto_error=False, scheme_name="bearer")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def caller_of(request: Request) -> Caller:
    """Return the caller, or raise; what fast routes use without the framework."""
    exchange = exchange_of(request)
    cache: CallerCache = request.app.state.callers
    caller: Caller | None = exchange.known_caller
    if caller is None:
        caller = await cache.find(_bearer_token(exchange.authorization), path=request.scope["path"])
    elif not cache.use(caller, path=request.scope["path"]):
        caller = None
    if caller is None:
        raise InvalidToken
    exchange.identify(caller.user_name)
    return reaching(request, caller)


# What is found below these addresses belongs to an organization, the public part too.
_OF_ORGANIZATION = re.compile(r"(?:/api)?/organizations/([^/]+)(?:/.*)?")


def reaching(request: Request, caller: Caller) -> Caller:
    """Return the caller as seen from the address of the request.

    Refuses one who does not reach the organization in the path: see decision 0081. Elsewhere rights
    are looked up by `Caller.may`, which knows of it.
    """
    if not caller.blocked:
        return caller
    caller = caller.seen_from(exchange_of(request).address)
    if caller.blocked and (named := _OF_ORGANIZATION.fullmatch(request.url.path)):
        caller.check_reaches_name(named[1])
    return caller


def known_caller(cache: CallerCache, authorization: str) -> Caller | None:
    """Return who sends this header if that is known without asking the database."""
    scheme, _, value = authorization.partition(" ")
    return cache.known(value.strip()) if scheme.lower() == "bearer" else None


def _bearer_token(authorization: str | None) -> str:
    if authorization is None:
        raise TokenNeeded
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "bearer" or not value:
        raise InvalidToken
    return value.strip()


async def identify(request: Request, needed: SecurityScopes, _credentials: Credentials) -> Caller:
    caller = await caller_of(request)
    if missing := set(needed.scopes) - caller.scopes:
        raise ScopeNeeded(missing)
    return caller


async def identify_if_given(request: Request, _credentials: Credentials) -> Caller | None:
    """Return None without a token; an invalid one is an error, so that its holder learns of it."""
    if exchange_of(request).authorization is None:
        if await needs_token(request):
            raise TokenNeeded
        return None
    return await caller_of(request)


async def needs_token(request: Request) -> bool:
    """Tell whether nobody reads anything without a token from the address of the request."""
    cache: CallerCache = request.app.state.callers
    return await cache.needs_token(exchange_of(request).address)


async def identify_for_git(request: Request, _credentials: Credentials) -> Caller | None:
    """Git sends the token as a password; those who have none yet are challenged by the route."""
    exchange = exchange_of(request)
    if exchange.authorization is None:
        if await needs_token(request):
            raise GitTokenNeeded
        return None
    cache: CallerCache = request.app.state.callers
    caller = await cache.find(_token_for_git(exchange.authorization))
    if caller is None:
        raise InvalidGitToken
    exchange.identify(caller.user_name)
    return reaching(request, caller)


def _token_for_git(authorization: str) -> str:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        raise InvalidGitToken
    try:
        user, _, password = b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise InvalidGitToken from None
    # `https://hf_…@hub/…` gives the token as the user, without a password.
    return password or user


AnyCaller = Annotated[Caller, Security(identify)]
MaybeCaller = Annotated[Caller | None, Depends(identify_if_given)]
# None without a token; see `GitTokenNeeded` for what a route answers that needs one.
GitCaller = Annotated[Caller | None, Depends(identify_for_git)]


async def identify_owner(caller: AnyCaller) -> Caller:
    """Only a full token may change the account itself; scopes never reach that far."""
    if caller.token.role is not TokenRole.write:
        raise WriteTokenNeeded
    return caller


async def identify_account_reader(caller: AnyCaller) -> Caller:
    if caller.token.role is TokenRole.fine_grained:
        raise FullTokenNeeded
    return caller


AccountReader = Annotated[Caller, Depends(identify_account_reader)]
AccountOwner = Annotated[Caller, Depends(identify_owner)]


def check_inbox_reader(caller: Caller) -> None:
    """Refuse what only has scopes: none of interface 5.3 reaches the inbox."""
    if caller.token.role is TokenRole.fine_grained and not caller.token.grants.inbox:
        raise FullTokenNeeded


async def identify_inbox_reader(caller: AnyCaller) -> Caller:
    check_inbox_reader(caller)
    return caller


async def identify_inbox_owner(caller: AnyCaller) -> Caller:
    return caller if caller.token.grants.inbox else await identify_owner(caller)


# Who reads an inbox and its settings, and who changes them.
InboxReader = Annotated[Caller, Depends(identify_inbox_reader)]
InboxOwner = Annotated[Caller, Depends(identify_inbox_owner)]


def check_administrator(caller: Caller) -> None:
    if not caller.is_admin or caller.token.role is not TokenRole.write:
        raise AdministratorNeeded


async def identify_administrator(caller: AnyCaller) -> Caller:
    check_administrator(caller)
    return caller


Administrator = Annotated[Caller, Depends(identify_administrator)]

# One type per scope of interface 5.3.
OpenIdUser = Annotated[Caller, Security(identify, scopes=[Scope.openid])]
ProfileReader = Annotated[Caller, Security(identify, scopes=[Scope.profile])]
EmailReader = Annotated[Caller, Security(identify, scopes=[Scope.email])]
BillingReader = Annotated[Caller, Security(identify, scopes=[Scope.read_billing])]
MembershipReader = Annotated[Caller, Security(identify, scopes=[Scope.read_memberships])]
RepoReader = Annotated[Caller, Security(identify, scopes=[Scope.read_repos])]
GatedRepoReader = Annotated[Caller, Security(identify, scopes=[Scope.gated_repos])]
RepoContributor = Annotated[Caller, Security(identify, scopes=[Scope.contribute_repos])]
RepoWriter = Annotated[Caller, Security(identify, scopes=[Scope.write_repos])]
RepoManager = Annotated[Caller, Security(identify, scopes=[Scope.manage_repos])]
CollectionReader = Annotated[Caller, Security(identify, scopes=[Scope.read_collections])]
CollectionWriter = Annotated[Caller, Security(identify, scopes=[Scope.write_collections])]
InferenceUser = Annotated[Caller, Security(identify, scopes=[Scope.inference_api])]
EndpointReader = Annotated[Caller, Security(identify, scopes=[Scope.read_endpoints])]
EndpointWriter = Annotated[Caller, Security(identify, scopes=[Scope.write_endpoints])]
JobRunner = Annotated[Caller, Security(identify, scopes=[Scope.jobs])]
WebhookManager = Annotated[Caller, Security(identify, scopes=[Scope.webhooks])]
DiscussionWriter = Annotated[Caller, Security(identify, scopes=[Scope.write_discussions])]


def actor_of(request: Request, caller: Caller) -> Actor:
    """Return the caller as the audit log keeps it."""
    return Actor(id=caller.user_id, name=caller.user_name, address=exchange_of(request).address)
