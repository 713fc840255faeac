"""HTTP for tokens of the registry: the token protocol of Docker, by GET and by POST."""

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Query, Request

from hublet.core.clock import from_micros, micros
from hublet.core.database import Database
from hublet.core.http import Router
from hublet.core.http.exchange import exchange_of
from hublet.core.schema import Schema, Timestamp
from hublet.registry.auth import BearerToken, UserAndToken, find_hub_caller, password_of
from hublet.registry.errors import InvalidTokenForm
from hublet.registry.tokens import (
    REALM_PATH,
    RegistryToken,
    is_expired,
    new_token,
    read_token,
    sign_token,
    token_needed,
)

_MOST_FIELDS = 100
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        name: {"type": "string"}
                        for name in (
                            "grant_type", "service", "client_id", "scope", "username", "password",
                        )
                    },
                    "required": ["grant_type"],
                }
            }
        },
    }
}  # fmt: skip
# Nobody needs credentials for what is public.
_LOGIN: dict[str, Any] = {"security": [{"registryPassword": []}, {}]}


class RegistryAccessToken(Schema):
    """A token under both names that clients look for; `expires_in` is in seconds."""

    token: str
    access_token: str
    expires_in: int
    issued_at: Timestamp


class RegistryProblem(Schema):
    code: str
    message: str
    detail: None


class RegistryLoginRefused(Schema):
    """The reason as all of the API says it, and as clients of a registry look for it."""

    error: str
    errors: list[RegistryProblem]


router = Router(tags=["containers"], responses={401: {"model": RegistryLoginRefused}})

Text = Annotated[str | None, Query(max_length=1000)]


@router.get(REALM_PATH, openapi_extra=_LOGIN)
async def get_registry_token(
    request: Request,
    _user_and_token: UserAndToken,
    _bearer_token: BearerToken,
    scope: Annotated[
        list[str],
        Query(description="Such as `repository:ada/tool:pull,push`; several, or one with spaces."),
    ] = [],  # noqa: B006 - the framework copies it
    service: Text = None,  # noqa: ARG001 - there is one
    account: Text = None,  # noqa: ARG001 - the credentials say it
    client_id: Text = None,  # noqa: ARG001 - every client is the same
    offline_token: Text = None,  # noqa: ARG001 - a client that gets none keeps its credentials
) -> RegistryAccessToken:
    """Get a token for the container registry, as `docker login` and pulls do.

    With a user's name and a token of the hub as the password (or an access token of an app), it may
    do in the repositories of its scopes what that token may; without, what everybody may. Fewer rights
    than asked for are no error here.
    """
    authorization = exchange_of(request).authorization
    if authorization is None:
        return _respond(request, new_token(None, scope))
    return _respond(request, await _log_in(request, password_of(authorization), scope))


@router.post(REALM_PATH, openapi_extra=_FORM | _LOGIN)
async def create_registry_token(request: Request) -> RegistryAccessToken:
    """Get a token for the container registry with a form, as containerd does.

    `password` is a token of the hub. The hub gives no refresh tokens, so it takes none.
    """
    fields = _parse_form(await request.body())
    match fields.get("grant_type"):
        case "password":
            scope = fields.get("scope", "")
            token = await _log_in(request, fields.get("password"), [scope])
        case "refresh_token":
            raise InvalidTokenForm(
                "grant_type refresh_token: this hub gives no refresh tokens. Log in again, with your "
                "user name and a token of the hub as the password."
            )
        case _:
            raise InvalidTokenForm("grant_type must be password.")
    return _respond(request, token)


def _parse_form(body: bytes) -> dict[str, str]:
    """Return the fields; scopes that stand in several fields are joined."""
    fields: dict[str, str] = {}
    try:
        pairs = parse_qsl(body.decode(), errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidTokenForm(
            f"The body must be a form in UTF-8 with at most {_MOST_FIELDS} fields."
        ) from None
    for name, value in pairs:
        fields[name] = f"{fields[name]} {value}" if name == "scope" and name in fields else value
    return fields


async def _log_in(request: Request, password: str | None, scopes: list[str]) -> RegistryToken:
    """Return a token for who has this password; that of a job is its own password."""
    own = None if password is None else read_token(password, _database(request).hub.keys)
    if own is not None and own.delegation is not None and not is_expired(own):
        return own
    caller = await find_hub_caller(request, password)
    if caller is None:
        raise token_needed(
            _database(request).hub.settings,
            "The password is not a token of this hub, or that has expired or was revoked: create one in "
            "your settings.",
        )
    return new_token(caller, scopes)


def _respond(request: Request, token: RegistryToken) -> RegistryAccessToken:
    text = sign_token(token, _database(request).hub.keys)
    return RegistryAccessToken(
        token=text,
        access_token=text,
        expires_in=token.expires - micros() // 1_000_000,
        issued_at=from_micros(token.issued * 1_000_000),
    )


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database
