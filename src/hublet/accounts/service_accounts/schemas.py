"""Service accounts on the wire."""

from typing import Self

from pydantic import MISSING

from hublet.accounts.records import Member, Role
from hublet.accounts.schemas import AccountName, RoleName
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class CreateServiceAccount(Schema):
    name: AccountName
    role: Role
    fullname: Line | MISSING = MISSING


class ServiceAccount(Schema):
    id: ObjectId
    name: str
    fullname: str
    role: RoleName
    createdAt: Timestamp

    @classmethod
    def of(cls, account: Member) -> Self:
        return cls.model_validate(
            {
                "id": account.user.id,
                "name": account.user.name,
                "fullname": account.user.fullname,
                "role": account.role,
                "createdAt": account.user.created_at,
            }
        )
