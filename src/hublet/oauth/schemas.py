"""Wire shapes of the OAuth endpoints, whose names are those of the RFCs, and of trusted publishers."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.oauth.apps.records import logo_url
from hublet.oauth.authorize import records
from hublet.oauth.publishers.records import (
    DEFAULT_ISSUERS,
    Provider,
    Publisher,
    PublisherDraft,
)
from hublet.oauth.records import Via
from hublet.tokens.records import Scope


class Tokens(Schema):
    """What an app gets (RFC 6749, 5.1)."""

    access_token: str
    token_type: Literal["bearer"]
    # Seconds.
    expires_in: int
    scope: str
    refresh_token: str | MISSING = MISSING
    # With the scope openid only.
    id_token: str | MISSING = MISSING
    # At a token exchange only.
    issued_token_type: str | MISSING = MISSING


class DeviceAuthorization(Schema):
    """What an app shows a person (RFC 8628, 3.2), and polls with."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class OAuthRefusal(Schema):
    """The form of errors of OAuth endpoints (RFC 6749, 5.2)."""

    error: str
    error_description: str
    # Seconds between two polls, with slow_down for a device code.
    interval: int | MISSING = MISSING


_DESCRIPTIONS = {
    400: "The request is refused; `error` is a code of RFC 6749, RFC 8628 or RFC 8693.",
    401: "The app is unknown, or does not prove who it is.",
    413: "The body is larger than this endpoint takes.",
    415: "The body is compressed.",
    429: "There were too many requests; `error` is `slow_down`.",
    503: "A part of the hub cannot answer now; the same request may succeed later.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": OAuthRefusal, "description": sentence}
    for status, sentence in _DESCRIPTIONS.items()
}

_TEXT = {"type": "string"}
_CREDENTIALS = {"client_id": _TEXT, "client_secret": _TEXT}


def form_body(*names: str, required: list[str]) -> dict[str, Any]:
    """Describe a request whose parameters come as a form or as JSON."""
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, _TEXT) | _CREDENTIALS,
        "required": required,
    }
    content = {
        media_type: {"schema": schema}
        for media_type in ("application/x-www-form-urlencoded", "application/json")
    }
    return {"requestBody": {"required": True, "content": content}}


TOKEN_FORM = form_body(
    "grant_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "device_code",
    "subject_token",
    "subject_token_type",
    "requested_token_type",
    "scope",
    "resource",
    "audience",
    required=["grant_type"],
)


class Introspection(Schema):
    """What is said of a token; of one that does not work, only that."""

    active: bool
    scope: str | MISSING = MISSING
    client_id: str | MISSING = MISSING
    # The name of the user it acts for, and their id.
    username: str | MISSING = MISSING
    sub: str | MISSING = MISSING
    token_type: Literal["bearer"] | MISSING = MISSING
    # In seconds since the epoch.
    exp: int | MISSING = MISSING
    iat: int | MISSING = MISSING
    iss: str | MISSING = MISSING
    aud: str | MISSING = MISSING


class UserinfoOrganization(Schema):
    sub: ObjectId
    name: str
    preferred_username: str
    picture: str
    plan: str | MISSING = MISSING
    # With `read-memberships`.
    roleInOrg: str | MISSING = MISSING
    # With `read-billing`, for the organizations that were selected.
    canPay: bool | MISSING = MISSING


class Userinfo(Schema):
    """Claims about a user, as far as the scopes of the token reach."""

    sub: ObjectId
    # With `profile`.
    name: str | MISSING = MISSING
    preferred_username: str | MISSING = MISSING
    profile: str | MISSING = MISSING
    picture: str | MISSING = MISSING
    isPro: bool | MISSING = MISSING
    # With `email`.
    email: str | MISSING = MISSING
    email_verified: bool | MISSING = MISSING
    # With `read-billing`.
    canPay: bool | MISSING = MISSING
    # All with `read-memberships`, else those that were selected.
    orgs: list[UserinfoOrganization] | MISSING = MISSING


class ConnectedApp(Schema):
    clientId: str
    name: str
    logoUrl: str | MISSING = MISSING


class ReachedOrganization(Schema):
    id: ObjectId
    name: str


class OAuthAccess(Schema):
    id: ObjectId
    app: ConnectedApp
    # How the person came to allow it.
    via: Via
    scopes: list[Scope]
    organizations: list[ReachedOrganization]
    createdAt: Timestamp
    lastUsedAt: Timestamp
    # However often it is refreshed, it ends then.
    expiresAt: Timestamp
    # From where and with what it was allowed, as far as that is known.
    address: str | MISSING = MISSING
    agent: str | MISSING = MISSING

    @classmethod
    def of(cls, connected: records.ConnectedAccess, *, base_url: str) -> Self:
        access, app = connected.access, connected.app
        logo = logo_url(base_url, app.id) if app.has_logo else MISSING
        return cls(
            id=access.id,
            app=ConnectedApp(clientId=app.client_id, name=app.name, logoUrl=logo),
            via=access.via,
            scopes=[scope for scope in Scope if scope in access.permission.scopes],
            organizations=[
                ReachedOrganization(id=each, name=name)
                for each, name in connected.organizations.items()
            ],
            createdAt=access.created_at,
            lastUsedAt=access.last_used_at,
            expiresAt=access.expires_at,
            address=access.address or MISSING,
            agent=access.agent or MISSING,
        )


_ProviderName = Literal["github", "gitlab", "circleci", "bitbucket", "custom"]

_Claims = Annotated[
    dict[str, str],
    Field(
        description="What an ID token must say. For GitHub `repository`, and if wanted `branch`, "
        "`environment` and `workflow`; for GitLab `project` in place of `repository`; any other claim by its "
        "own name."
    ),
]
_PinnedIds = Annotated[
    dict[str, str],
    Field(
        description="Ids at the provider, which a new owner of an old name does not have. Those that are "
        "not given are those of the first exchange."
    ),
]


class PublisherRequest(Schema):
    """A workflow that a repository shall trust."""

    provider: _ProviderName
    # That of the provider, where it has only one.
    issuer: str | MISSING = MISSING
    claims: _Claims
    pinnedIds: _PinnedIds | MISSING = MISSING

    def draft(self) -> PublisherDraft:
        provider = Provider(self.provider)
        issuer = DEFAULT_ISSUERS.get(provider, "") if self.issuer is MISSING else self.issuer
        return PublisherDraft(
            provider=provider,
            issuer=issuer,
            claims=self.claims,
            pins={} if self.pinnedIds is MISSING else self.pinnedIds,
        )


class TrustedPublisher(Schema):
    """A workflow that a repository trusts."""

    id: ObjectId
    provider: _ProviderName
    issuer: str
    claims: _Claims
    pinnedIds: _PinnedIds
    createdAt: Timestamp
    # The name of who added it, who may be gone since.
    createdBy: str
    updatedAt: Timestamp
    lastUsedAt: Timestamp | MISSING = MISSING
    # The subject of the last ID token that was exchanged.
    lastSubject: str | MISSING = MISSING

    @classmethod
    def of(cls, publisher: Publisher) -> Self:
        return cls.model_validate(
            {
                "id": publisher.id,
                "provider": publisher.provider,
                "issuer": publisher.issuer,
                "claims": dict(publisher.claims),
                "pinnedIds": dict(publisher.pins),
                "createdAt": publisher.created_at,
                "createdBy": publisher.creator_name,
                "updatedAt": publisher.updated_at,
                "lastUsedAt": publisher.last_used_at or MISSING,
                "lastSubject": publisher.last_subject or MISSING,
            }
        )
