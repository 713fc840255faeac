"""What a registered SSH key is."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKey:
    id: str
    user_id: str
    title: str
    type: str
    # The public key in base64, without its type in front.
    data: str
    fingerprint: str
    created_at: datetime
