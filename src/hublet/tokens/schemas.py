"""Wire schemas of credentials."""

from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Line, ObjectId, Schema, Timestamp
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


class IssueToken(CreateToken):
    # An own value of 8 to 200 printable characters, such as a test suite brings along.
    value: str | MISSING = MISSING
