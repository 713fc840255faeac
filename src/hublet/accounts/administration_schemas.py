"""Wire schemas for hub administrators: users, organizations and parked tasks."""

from typing import Annotated, Self

from pydantic import MISSING, Field

from hublet.accounts.records import Organization, OrganizationPlan, User
from hublet.accounts.schemas import AccountName, EmailAddress, NewPassword, UserTypeName
from hublet.core.clock import from_micros
from hublet.core.queue import ParkedTask
from hublet.core.schema import Flag, Line, ObjectId, Schema, Timestamp


class AddUser(Schema):
    name: AccountName
    email: EmailAddress | MISSING = MISSING
    fullname: Line | MISSING = MISSING
    # Without one nobody can log in to the account by password.
    password: NewPassword | MISSING = MISSING
    isAdmin: Flag = False


class UpdateUser(Schema):
    disabled: Flag | MISSING = MISSING
    isAdmin: Flag | MISSING = MISSING


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


class AddOrganization(Schema):
    name: AccountName
    plan: OrganizationPlan = OrganizationPlan.free
    fullname: Line | MISSING = MISSING


class SetPlan(Schema):
    plan: OrganizationPlan


class AdministeredOrganization(Schema):
    id: ObjectId
    name: str
    fullname: str
    plan: OrganizationPlan
    createdAt: Timestamp

    @classmethod
    def of(cls, organization: Organization) -> Self:
        return cls(
            id=organization.id,
            name=organization.name,
            fullname=organization.fullname,
            plan=organization.plan,
            createdAt=organization.created_at,
        )


class ParkedTaskCard(Schema):
    id: str
    kind: str
    attempts: int
    error: str
    parkedAt: Timestamp

    @classmethod
    def of(cls, task: ParkedTask) -> Self:
        return cls(
            id=task.id,
            kind=task.kind,
            attempts=task.attempts,
            error=task.error,
            parkedAt=from_micros(task.parked_at),
        )


class RetryTasks(Schema):
    # Without one, all of them.
    id: Annotated[str, Field(min_length=1)] | MISSING = MISSING


class RetriedTasks(Schema):
    count: int
