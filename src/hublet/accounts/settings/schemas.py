"""Wire schemas of one's own profile, e-mail addresses and SSH keys."""

from typing import Annotated, Self

from pydantic import MISSING, Field

from hublet.accounts import records
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import User
from hublet.accounts.schemas import EmailAddress, UserTypeName
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class Profile(Schema):
    id: ObjectId
    name: str
    fullname: str
    avatarUrl: str
    type: UserTypeName
    isAdmin: bool
    createdAt: Timestamp

    @classmethod
    def of(cls, user: User, *, base_url: str) -> Self:
        return cls.model_validate(
            {
                "id": user.id,
                "name": user.name,
                "fullname": user.fullname,
                "avatarUrl": avatar_url(base_url, user.id),
                "type": user.type,
                "isAdmin": user.is_admin,
                "createdAt": user.created_at,
            }
        )


class UpdateProfile(Schema):
    fullname: Line | MISSING = MISSING


class AddEmail(Schema):
    email: EmailAddress


class Email(Schema):
    id: ObjectId
    email: str
    isPrimary: bool
    isVerified: bool
    createdAt: Timestamp

    @classmethod
    def of(cls, email: records.UserEmail) -> Self:
        return cls(
            id=email.id,
            email=email.address,
            isPrimary=email.is_primary,
            isVerified=email.verified_at is not None,
            createdAt=email.created_at,
        )


class AddSshKey(Schema):
    title: Line
    # The line of an `id_….pub` file.
    key: Annotated[str, Field(min_length=1)]


class SshKey(Schema):
    id: ObjectId
    title: str
    key: str
    fingerprint: str
    createdAt: Timestamp
    lastUsedAt: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, key: records.UserSshKey) -> Self:
        return cls(
            id=key.id,
            title=key.title,
            key=f"{key.type} {key.data}",
            fingerprint=key.fingerprint,
            createdAt=key.created_at,
            lastUsedAt=key.last_used_at or MISSING,
        )
