"""The caller's own profile and password on the wire."""

from typing import Self

from pydantic import MISSING

from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import User
from hublet.accounts.schemas import NewPassword, UserTypeName
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


class ChangePassword(Schema):
    currentPassword: str
    newPassword: NewPassword
