"""Authentication of the registry: who calls it, as annotated types that its routes name.

A client sends a token of `/api/registry/token`, or a token of the hub: as a bearer token, or as the
password of a user (`curl -u ada:hf_…`).
"""

import re
from base64 import b64decode
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBasic, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from hublet.core.database import Database
from hublet.core.http.exchange import exchange_of
from hublet.registry.errors import RegistryTokenNeeded
from hublet.registry.tokens import (
    RegistryIdentity,
    is_expired,
    read_token,
    scope_for,
    token_needed,
)
from hublet.repos.records import Right
from hublet.tokens import store as tokens
from hublet.tokens.auth import needs_token
from hublet.tokens.cache import CallerCache
from hublet.tokens.delegations import Delegation, find_delegate
from hublet.tokens.records import Caller


class _Password(HTTPBasic):
    """A scheme of the description only: `identify` reads what is sent."""

    async def __call__(self, request: Request) -> None:  # type: ignore[override]  # noqa: ARG002
        return None


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="registry",
    description="The `token` of `/api/registry/token`, or a token of the hub.",
)
_password = _Password(
    auto_error=False,
    scheme_name="registryPassword",
    description="The name of a user, and a token of the hub as the password.",
)
BearerToken = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
UserAndToken = Annotated[None, Depends(_password)]

_NEEDED = "The registry needs a token: log in with your user name and a token of the hub."
_INVALID = (
    "The token is not valid, has expired, or was revoked: log in with your user name and a token "
    "of the hub."
)

# A name may itself have a part called `blobs`, so the last one counts.
_IMAGE = re.compile(r"/v2/(?P<name>.+)/(?:manifests|blobs|tags|referrers)/.*", re.DOTALL)
_READING_METHODS = frozenset({"GET", "HEAD"})


def challenge_of(
    request: Request, message: str, *, error: str | None = None
) -> RegistryTokenNeeded:
    """Return the 401 for a request, with the scope that its route needs."""
    database: Database = request.app.state.database
    found = _IMAGE.fullmatch(request.url.path)
    right = Right.read if request.method in _READING_METHODS else Right.write
    # What no image can be called stands in no header.
    scopes = [scope_for(found["name"], right)] if found and _is_plain(found["name"]) else []
    return token_needed(database.hub.settings, message, scopes=scopes, error=error)


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9._/-]+", name) is not None


def password_of(authorization: str) -> str | None:
    """Return the token of the hub in a header: of the scheme Bearer, or the password of Basic.

    The name beside the password does not count: the token says whose it is, as with git.
    """
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return b64decode(value.strip(), validate=True).decode().partition(":")[2] or None
    except ValueError:
        return None


async def find_hub_caller(request: Request, value: str | None) -> Caller | None:
    """Return who holds a token of the hub; from now on the request counts for them."""
    cache: CallerCache = request.app.state.callers
    caller = None if not value else await cache.find(value)
    if caller is not None:
        exchange_of(request).identify(caller.user_name)
        caller = caller.seen_from(exchange_of(request).address)
    return caller


async def identify(
    request: Request, _bearer_token: BearerToken, _user_and_token: UserAndToken
) -> RegistryIdentity:
    """Return who calls, nobody without a token; a token that does not work is an error."""
    authorization = exchange_of(request).authorization
    if authorization is None:
        if await needs_token(request):
            raise challenge_of(request, _NEEDED)
        return RegistryIdentity()
    value = password_of(authorization)
    identity = None if value is None else await _find_identity(request, value)
    if identity is None:
        raise challenge_of(request, _INVALID, error="invalid_token")
    return identity


async def _find_identity(request: Request, value: str) -> RegistryIdentity | None:
    database: Database = request.app.state.database
    token = read_token(value, database.hub.keys)
    if token is None:
        caller = await find_hub_caller(request, value)
        return None if caller is None else RegistryIdentity(caller=caller)
    if is_expired(token):
        return None
    repositories = frozenset(token.repositories)
    if token.delegation is not None:
        return await _find_job(database, token.delegation, repositories)
    if token.credential_id is None:
        return RegistryIdentity(repositories=repositories)
    async with database.read() as conn:
        holder = await tokens.find_caller_by_id(conn, token.credential_id)
    cache: CallerCache = request.app.state.callers
    if holder is None or not cache.use(holder):
        return None
    exchange_of(request).identify(holder.user_name)
    seen = holder.seen_from(exchange_of(request).address)
    return RegistryIdentity(caller=seen, repositories=repositories)


async def _find_job(
    database: Database, delegation: Delegation, repositories: frozenset[str]
) -> RegistryIdentity | None:
    """Return a job that pulls in the name of its creator, with the rights that were granted to it."""
    async with database.read() as conn:
        delegate = await find_delegate(conn, delegation)
    if delegate is None:
        return None
    return RegistryIdentity(caller=delegate, repositories=repositories, is_read_only=True)


# Anybody, also without a token: what is public needs none.
RegistryCaller = Annotated[RegistryIdentity, Depends(identify)]


async def identify_token_holder(request: Request, identity: RegistryCaller) -> RegistryIdentity:
    """Refuse whoever sends no token at all, even one that nobody in particular was given.

    Where `GET /v2/` answers 200 without a token, docker and skopeo never send their credentials.
    """
    if exchange_of(request).authorization is None:
        raise challenge_of(request, _NEEDED)
    return identity


RegistryTokenHolder = Annotated[RegistryIdentity, Depends(identify_token_holder)]
