"""What a batch asks for."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import RepoAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A file that is to be put: with its content, or with one that the hub has already."""

    path: str
    # Either the content itself, or its SHA-256.
    content: bytes | None = None
    sha256: str | None = None
    # Which repository has that content; None: the one that the batch changes.
    source: RepoAddress | None = None
    media_type: str
    modified_at: datetime | None = None
