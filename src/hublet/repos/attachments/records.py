"""What an attachment is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    # The last part of its address. Nobody can guess it, and who has it may see the content.
    name: str
    user_id: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
