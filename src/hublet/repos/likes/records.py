"""What a like is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    repo: Repo
    created_at: datetime
