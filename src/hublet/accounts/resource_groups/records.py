"""What a resource group is."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """A part of an organization with members and rules of its own."""

    id: str
    organization_id: str
    name: str
    description: str
    created_at: datetime
