"""What is told about the large files of a repository."""

from hublet.core.light_dataclasses import dataclass
from hublet.repos.blobs.records import LinkedBlob


@dataclass(frozen=True, slots=True, kw_only=True)
class LfsFile:
    blob: LinkedBlob
    # A path and a ref where its pointer stands now; None when it stands only in older commits.
    path: str | None = None
    ref: str | None = None
