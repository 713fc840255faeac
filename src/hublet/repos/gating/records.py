"""What a request to read a gated repository is."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.records import User
from hublet.core.light_dataclasses import dataclass


class AccessStatus(StrEnum):
    pending = "pending"
    accepted = "accepted"
    rejected = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    id: str
    repo_id: str
    user_id: str
    status: AccessStatus
    # What the person filled in; None for one who never asked and was let in all the same.
    fields: dict[str, Any] | None
    rejection_reason: str | None = None
    # None when nobody decided, or the gate opens by itself.
    decided_by: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who asked, with the address that asking shares."""

    request: AccessRequest
    user: User
    email: str | None
