"""The caller's own e-mail addresses on the wire."""

from typing import Self

from hublet.accounts import records
from hublet.accounts.schemas import EmailAddress
from hublet.core.schema import ObjectId, Schema, Timestamp


class AddEmail(Schema):
    email: EmailAddress


class Email(Schema):
    id: ObjectId
    email: str
    isPrimary: bool
    isVerified: bool
    createdAt: Timestamp

    @classmethod
    def of(cls, email: records.Email) -> Self:
        return cls(
            id=email.id,
            email=email.address,
            isPrimary=email.is_primary,
            isVerified=email.verified_at is not None,
            createdAt=email.created_at,
        )
