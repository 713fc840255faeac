"""What is told of a revision."""

from pathlib import Path

from hublet.core.light_dataclasses import dataclass
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import Entry
from hublet.repos.records import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit of a repository, and the folder where git holds it."""

    repo: Repo
    commit: str
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    entry: Entry
    # The commit that last changed it, where that was asked for and is not too long ago.
    last_commit: CommitInfo | None = None
