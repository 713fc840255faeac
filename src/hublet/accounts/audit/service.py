"""Writing to an organization's audit log."""

from collections.abc import Mapping
from typing import Any

from hublet.accounts.audit import store
from hublet.accounts.audit.records import AuditLine
from hublet.accounts.records import Actor
from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.ids import new_object_id


async def record(
    conn: Connection,
    organization_id: str,
    actor: Actor,
    action: str,
    *,
    target: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a line in the transaction of what it tells of: both are kept, or neither."""
    line = AuditLine(
        id=new_object_id(),
        organization_id=organization_id,
        actor_id=actor.id,
        actor_name=actor.name,
        action=action,
        target=target,
        details=dict(details or {}),
        address=actor.address,
        at=now(),
    )
    await store.add(conn, line)
