"""Users as a hub administrator sees and makes them, on the wire."""

from typing import Self

from pydantic import MISSING

from hublet.accounts.records import User
from hublet.accounts.schemas import AccountName, EmailAddress, NewPassword, UserTypeName
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class AddUser(Schema):
    name: AccountName
    email: EmailAddress | MISSING = MISSING
    fullname: Line | MISSING = MISSING
    # Without one nobody can log in to the account by password.
    password: NewPassword | MISSING = MISSING
    isAdmin: bool = False


class UpdateUser(Schema):
    disabled: bool | MISSING = MISSING
    isAdmin: bool | MISSING = MISSING


class SetPassword(Schema):
    password: NewPassword


class AdministeredUser(Schema):
    id: ObjectId
    name: str
    fullname: str
    type: UserTypeName
    isAdmin: bool
    disabled: bool
    createdAt: Timestamp

    @classmethod
    def of(cls, user: User) -> Self:
        return cls.model_validate(
            {
                "id": user.id,
                "name": user.name,
                "fullname": user.fullname,
                "type": user.type,
                "isAdmin": user.is_admin,
                "disabled": user.disabled_at is not None,
                "createdAt": user.created_at,
            }
        )
