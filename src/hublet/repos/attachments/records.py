"""What an attachment is."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    # The last part of its address. Nobody can guess it, and who has it may see the content.
    name: str
    user_id: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
