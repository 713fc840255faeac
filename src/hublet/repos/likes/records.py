"""What a like is."""

from dataclasses import dataclass
from datetime import datetime

from hublet.repos.records import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    repo: Repo
    created_at: datetime
