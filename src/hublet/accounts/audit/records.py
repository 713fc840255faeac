"""A line of an organization's audit log."""

from datetime import datetime
from typing import Any

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    id: str
    organization_id: str
    actor_id: str | None
    actor_name: str
    # Dotted, past the dot what was done: `member.add`.
    action: str
    # The name of what it was done to.
    target: str
    details: dict[str, Any]
    address: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which lines are asked for; what is empty lets everything through."""

    action: str = ""
    actor: str = ""
    # In microseconds: from this moment on, and before that one.
    since: int = -(2**62)
    until: int = 2**62
