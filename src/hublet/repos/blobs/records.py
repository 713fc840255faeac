"""What a blob is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    sha256: str
    size: int
    # What git would call the same bytes, where it is known.
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedBlob:
    """A blob that a repository brought along, and when."""

    sha256: str
    size: int
    pushed_at: datetime
