"""Where to look for credentials, and what is found."""

from dataclasses import field

from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was brought into a repository, as a task keeps it."""

    repo_id: str
    updated_refs: tuple[UpdatedRef, ...]
    # Where main is; what is there already is not new on another branch.
    head_sha: str | None

    @property
    def starts(self) -> list[str]:
        return [each.new_sha for each in self.updated_refs if each.new_sha is not None]

    @property
    def known(self) -> set[str]:
        """Commits from which on everything was looked at before."""
        before = {each.old_sha for each in self.updated_refs if each.old_sha is not None}
        if self.head_sha is not None and self.head_sha not in self.starts:
            before.add(self.head_sha)
        return before


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A text that has the form of a credential; the text itself is shown nowhere."""

    value: str = field(repr=False)
    path: str
    commit: str
