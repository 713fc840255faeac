"""Apps, their secrets, and the settings of organizations about apps, on the wire."""

from typing import Annotated, Any, Self

from pydantic import MISSING, AfterValidator, Field

from hublet.core.schema import Flag, ObjectId, Schema, Timestamp
from hublet.oauth.apps import records
from hublet.oauth.apps.records import MAX_NAME, clean_name
from hublet.oauth.redirect_uris import MAX_REDIRECT_URI
from hublet.tokens.records import Scope

MAX_REDIRECT_URIS = 20
# How long replaced secrets may go on working beside the new one.
MAX_OVERLAP_SECONDS = 30 * 86400
# Interface 5.4 and 8: up to 30 days.
MAX_EXCHANGE_SECONDS = 30 * 86_400

AppName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(clean_name)]
# The rules have sentences of their own, in `oauth.redirect_uris`.
Uri = Annotated[str, Field(max_length=MAX_REDIRECT_URI)]
RedirectUris = Annotated[list[Uri], Field(max_length=MAX_REDIRECT_URIS)]
Scopes = Annotated[list[Scope], Field(max_length=len(Scope))]
_Seconds = Annotated[int, Field(ge=60, le=MAX_EXCHANGE_SECONDS)]


class CreateApp(Schema):
    name: AppName
    # An app that signs people in by device code alone needs none.
    redirectUris: RedirectUris = Field(default=[])
    # The most that it may ask people for.
    scopes: Scopes = Field(default=[Scope.openid, Scope.profile])
    clientUri: Uri | MISSING = MISSING
    # Redirect URIs without a query may come with any, for the helpers of the Python client.
    dynamicQuery: Flag = False
    # The organization that it is bound to; the caller must be an administrator of it.
    organization: str | MISSING = MISSING


class UpdateApp(Schema):
    """What is to change; a field that is left out keeps its value."""

    name: AppName | MISSING = MISSING
    redirectUris: RedirectUris | MISSING = MISSING
    scopes: Scopes | MISSING = MISSING
    # Null takes it away.
    clientUri: Uri | MISSING | None = MISSING
    dynamicQuery: Flag | MISSING = MISSING


class Secret(Schema):
    id: ObjectId
    # Its beginning and its end.
    hint: str
    createdAt: Timestamp
    # A replaced secret works until then.
    expiresAt: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, secret: records.ClientSecret) -> Self:
        return cls(
            id=secret.id,
            hint=secret.hint,
            createdAt=secret.created_at,
            expiresAt=secret.expires_at or MISSING,
        )


class CreateSecret(Schema):
    # How long the secrets before it work on.
    overlapSeconds: Annotated[int, Field(ge=0, le=MAX_OVERLAP_SECONDS)] = 86400


class CreatedSecret(Schema):
    """The one answer that holds the value: it cannot be shown again."""

    secret: Secret
    value: str


class App(Schema):
    clientId: str
    name: str
    redirectUris: list[str]
    scopes: list[str]
    clientUri: str | MISSING = MISSING
    logoUrl: str | MISSING = MISSING
    dynamicQuery: bool
    organization: str | MISSING = MISSING
    # The operator grants it.
    tokenExchange: bool
    # Without a secret an app is public.
    isPublic: bool
    secrets: list[Secret]
    tokenSeconds: int
    createdAt: Timestamp
    updatedAt: Timestamp

    @classmethod
    def of(cls, managed: records.ManagedApp) -> Self:
        app = managed.app
        fields: dict[str, Any] = {
            "clientId": app.client_id,
            "name": app.name,
            "redirectUris": list(app.redirect_uris),
            "scopes": [scope for scope in Scope if scope in app.scopes],
            "clientUri": app.client_uri or MISSING,
            "logoUrl": app.logo_uri or MISSING,
            "dynamicQuery": app.dynamic_query,
            "organization": managed.organization or MISSING,
            "tokenExchange": app.token_exchange,
            "isPublic": not app.confidential,
            "secrets": [Secret.of(secret) for secret in managed.secrets],
            "tokenSeconds": app.token_seconds,
            "createdAt": app.created_at,
            "updatedAt": app.updated_at,
        }
        return cls.model_validate(fields)


class OAuthSettings(Schema):
    # How long tokens live that apps of the organization get by token exchange.
    exchangeSeconds: _Seconds


class UpdateOAuthSettings(Schema):
    exchangeSeconds: _Seconds | MISSING = MISSING
