"""What is downloaded."""

from pathlib import Path

from hublet.core.light_dataclasses import dataclass
from hublet.repos.git.trees import Entry
from hublet.repos.records import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a commit: small ones lie in git, large ones in the folder of blobs."""

    repo: Repo
    commit: str
    entry: Entry
    # Git's folder of the repository.
    folder: Path
    # Where the content lies, if that is not git.
    blob: Path | None = None
