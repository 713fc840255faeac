"""What a resource group is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """A part of an organization with members and rules of its own."""

    id: str
    organization_id: str
    name: str
    description: str
    created_at: datetime
