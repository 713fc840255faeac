"""What a commit is asked to do, and what becomes of it."""

from hublet.core.light_dataclasses import dataclass
from hublet.repos.commits.body.contents import Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: what the commit says, and which state it is meant for."""

    summary: str
    description: str = ""
    parent: str | None = None

    @property
    def message(self) -> str:
        return f"{self.summary}\n\n{self.description}" if self.description else self.summary


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    path: str
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLfsFile:
    """A file whose content arrived before, through LFS."""

    path: str
    sha256: str
    # None: as large as it is; copies on the hub do not say.
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFolder:
    path: str


Operation = AddFile | AddLfsFile | DeleteFile | DeleteFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    oid: str
    url: str
    pull_request_url: str | None = None
