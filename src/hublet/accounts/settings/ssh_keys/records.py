"""What a registered SSH key is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass


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
