"""Wire schemas of credentials."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Flag, Line, ObjectId, Schema, Timestamp
from hublet.tokens import records
from hublet.tokens.records import Scope

Credential = Annotated[str, Field(min_length=1, max_length=200)]


class RevokeCredentials(Schema):
    credentials: Annotated[list[Credential], Field(min_length=1, max_length=1000)]


class Accepted(Schema):
    """Nothing more is said, whatever the request held."""


class CreateToken(Schema):
    name: Line
    role: Literal["read", "write", "fineGrained"] = "read"
    scopes: list[Scope] | MISSING = MISSING
    expiresAt: Timestamp | MISSING = MISSING


class ScopesOfOwner(Schema):
    """Scopes that hold for what one owner has: the caller, or an organization of theirs."""

    owner: Line
    scopes: Annotated[list[Scope], Field(min_length=1)]


class CreateOwnToken(CreateToken):
    # Only for a fine-grained one, beside or in place of `scopes`.
    scoped: Annotated[list[ScopesOfOwner], Field(max_length=100)] | MISSING = MISSING


class Token(Schema):
    id: ObjectId
    name: str
    role: Literal["read", "write", "fineGrained"]
    scopes: list[str]
    hint: str
    createdAt: Timestamp
    expiresAt: Timestamp | MISSING = MISSING
    lastUsedAt: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, token: records.TokenRecord) -> Self:
        return cls.model_validate(
            {
                "id": token.id,
                "name": token.name,
                "role": token.role,
                "scopes": sorted(records.scopes_of(token.role, token.grants)),
                "hint": token.hint,
                "createdAt": token.created_at,
                "expiresAt": token.expires_at or MISSING,
                "lastUsedAt": token.last_used_at or MISSING,
            }
        )


class CreatedToken(Schema):
    """The one answer that holds the value: it cannot be shown again."""

    token: Token
    value: str


PermissionName = Literal[
    "repo.content.read",
    "repo.write",
    "inference.serverless.write",
    "inference.endpoints.infer.write",
    "inference.endpoints.write",
    "org.read",
    "org.write",
    "collection.read",
    "collection.write",
    "resourceGroup.write",
    "job.write",
    "org.serviceAccounts.read",
    "org.serviceAccounts.write",
]


class UpdateServiceToken(Schema):
    displayName: Line | MISSING = MISSING
    # They make the token a fine-grained one; those of organizations and resource groups are refused.
    permissions: Annotated[list[PermissionName], Field(max_length=20)] | MISSING = MISSING
    # Rights to single repositories, and to inference endpoints, are not given here: empty lists only.
    repoIds: Annotated[list[ObjectId], Field(max_length=100)] | MISSING = MISSING
    repoPermissions: list[Literal["repo.content.read", "repo.write"]] | MISSING = MISSING
    endpointPatterns: Annotated[list[str], Field(max_length=20)] | MISSING = MISSING
    # Whether it works from every address, whatever networks the organization names.
    skipNetworkSecurity: Flag | MISSING = MISSING


class ServiceToken(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    displayName: str
    permissions: list[PermissionName]
    repoIds: list[ObjectId]
    repoPermissions: list[str]
    endpointPatterns: list[str]
    skipNetworkSecurity: bool

    @classmethod
    def of(cls, token: records.TokenRecord, permissions: Sequence[str]) -> Self:
        return cls.model_validate(
            {
                "_id": token.id,
                "displayName": token.name,
                "permissions": list(permissions),
                "repoIds": [],
                "repoPermissions": [],
                "endpointPatterns": [],
                "skipNetworkSecurity": token.skips_network_security,
            }
        )


class RotatedTokenInfo(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    displayName: str
    createdAt: Timestamp
    last4: str


class RotatedToken(Schema):
    """The one answer that holds the new value: it cannot be shown again."""

    token: str
    tokenInfo: RotatedTokenInfo

    @classmethod
    def of(cls, token: records.TokenRecord, value: str) -> Self:
        info = {
            "_id": token.id,
            "displayName": token.name,
            "createdAt": token.created_at,
            "last4": token.last4,
        }
        return cls(token=value, tokenInfo=RotatedTokenInfo.model_validate(info))


class MemberToken(Schema):
    """A member's credential, as administrators of an organization see it."""

    id: Annotated[ObjectId, Field(alias="_id")]
    user: str
    displayName: str
    last4: str
    # `oauth` and `jwt` are held by an app, for the member.
    kind: Literal["access", "oauth", "jwt"]
    role: Literal["read", "write", "fineGrained"]
    # Those that hold for what the organization has.
    scopes: list[str]
    createdAt: Timestamp
    expiresAt: Timestamp | MISSING = MISSING
    lastUsedAt: Timestamp | MISSING = MISSING
    # Here every token of a member works until it is revoked: there is none that waits or is denied.
    state: Literal["approved", "revoked"]
    revokedAt: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, found: records.OrganizationToken, *, organization_id: str) -> Self:
        token = found.token
        return cls.model_validate(
            {
                "_id": token.id,
                "user": found.user_name,
                "displayName": token.name,
                "last4": token.last4,
                "kind": token.kind,
                "role": token.role,
                "scopes": sorted(records.scopes_for(token, organization_id)),
                "createdAt": token.created_at,
                "expiresAt": token.expires_at or MISSING,
                "lastUsedAt": token.last_used_at or MISSING,
                "state": found.state,
                "revokedAt": found.cut_off_at or MISSING,
            }
        )


class RevokeMemberToken(Schema):
    token: Credential


class IssueToken(CreateToken):
    # An own value of 8 to 200 printable characters, such as a test suite brings along.
    value: str | MISSING = MISSING
