"""Requests to read gated repositories, on the wire."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.accounts.schemas import UserCard
from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.repos.gating import records

AccessStatusName = Literal["pending", "accepted", "rejected"]

_Answer = Annotated[str, StringConstraints(max_length=2000)] | bool | int | float | None
# What a person filled in, by the name of the field.
AskedFields = Annotated[
    dict[Annotated[str, StringConstraints(max_length=200)], _Answer], Field(max_length=50)
]


class AccessState(Schema):
    status: AccessStatusName


class HandleAccessRequest(Schema):
    """Which request, by its user or by its id, and what becomes of it."""

    user: str | MISSING = MISSING
    requestId: ObjectId | MISSING = MISSING
    status: AccessStatusName
    rejectionReason: Annotated[str, StringConstraints(max_length=200)] | None = None


class GrantAccess(Schema):
    user: str


class Requester(UserCard):
    # Absent for somebody who never asked.
    email: str | MISSING = MISSING


class AccessRequest(Schema):
    requestId: ObjectId
    status: AccessStatusName
    timestamp: Timestamp
    user: Requester
    fields: dict[str, Any] | MISSING = MISSING
    rejectionReason: str | MISSING = MISSING

    @classmethod
    def of(cls, found: records.Requester, *, base_url: str) -> Self:
        request = found.request
        asked = request.fields is not None
        card = UserCard.of(found.user, base_url=base_url).model_dump(by_alias=True)
        return cls.model_validate(
            {
                "requestId": request.id,
                "status": request.status.value,
                "timestamp": request.created_at,
                "user": card | {"email": (found.email if asked else None) or MISSING},
                "fields": request.fields or MISSING,
                "rejectionReason": request.rejection_reason or MISSING,
            }
        )
