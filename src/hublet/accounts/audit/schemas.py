"""The audit log on the wire."""

from typing import Any, Self

from pydantic import MISSING

from hublet.accounts.audit import records
from hublet.core.schema import ObjectId, Schema, Timestamp


class AuditActor(Schema):
    # Absent for those who are not users, such as the operator of the hub.
    id: ObjectId | MISSING = MISSING
    name: str


class AuditLine(Schema):
    id: ObjectId
    at: Timestamp
    action: str
    actor: AuditActor
    target: str
    details: dict[str, Any]
    # The address that the request came from; absent for commands on the machine itself.
    address: str | MISSING = MISSING

    @classmethod
    def of(cls, line: records.AuditLine) -> Self:
        return cls.model_validate(
            {
                "id": line.id,
                "at": line.at,
                "action": line.action,
                "actor": {"id": line.actor_id or MISSING, "name": line.actor_name},
                "target": line.target,
                "details": line.details,
                "address": line.address or MISSING,
            }
        )
