"""Organizations as a hub administrator sees and makes them, on the wire."""

from typing import Self

from pydantic import MISSING

from hublet.accounts.records import Organization, Plan
from hublet.accounts.schemas import AccountName
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class AddOrganization(Schema):
    name: AccountName
    plan: Plan = Plan.free
    fullname: Line | MISSING = MISSING


class SetPlan(Schema):
    plan: Plan


class AdministeredOrganization(Schema):
    id: ObjectId
    name: str
    fullname: str
    plan: Plan
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
