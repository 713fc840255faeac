"""Folders, files and commits on the wire."""

from html import escape
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Schema, Timestamp
from hublet.repos.git import trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.identities import user_of
from hublet.repos.trees.records import Listed

MOST_PATHS = 1000

Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Lfs(Schema):
    """Where the content lies that a pointer in git stands for."""

    oid: Sha256
    size: int
    pointerSize: int


class LastCommit(Schema):
    """The commit that last changed a file or folder."""

    id: Sha1
    title: str
    date: Timestamp


class SecurityFileStatus(Schema):
    """What a scan found; this hub scans nothing."""

    status: Literal["unscanned"] = "unscanned"
    avScan: None = None
    pickleImportScan: None = None


class TreeEntry(Schema):
    """A file or a folder; the size of a file in LFS is that of its content."""

    type: Literal["file", "directory"]
    oid: Sha1
    size: int
    path: str
    lfs: Lfs | MISSING = MISSING
    lastCommit: LastCommit | MISSING = MISSING
    securityFileStatus: SecurityFileStatus | MISSING = MISSING

    @classmethod
    def of(cls, listed: Listed, *, expand: bool) -> "TreeEntry":
        entry, last = listed.entry, listed.last_commit
        is_scanned = expand and entry.type == "file"
        # Lists are long, and these values come from git: checking them costs more than they do.
        return cls.model_construct(
            type=entry.type,
            oid=entry.oid,
            size=entry.size,
            path=entry.path,
            lfs=MISSING if entry.lfs is None else _lfs(entry.lfs),
            lastCommit=MISSING if last is None else _last_commit(last),
            securityFileStatus=SecurityFileStatus() if is_scanned else MISSING,
        )


def _lfs(lfs: trees.Lfs) -> Lfs:
    return Lfs.model_construct(oid=lfs.sha256, size=lfs.size, pointerSize=lfs.pointer_size)


def _last_commit(commit: CommitInfo) -> LastCommit:
    return LastCommit.model_construct(id=commit.id, title=commit.title, date=commit.date)


class PathsInfo(Schema):
    paths: Annotated[list[str], Field(min_length=1, max_length=MOST_PATHS)]
    expand: bool = False


class TreeSize(Schema):
    """How many bytes the files below a folder have together."""

    path: str
    size: int


class CommitAuthor(Schema):
    """A user of this hub, or the name that stands in a commit from elsewhere."""

    user: str


class Formatted(Schema):
    """The same texts, safe to put into a page."""

    title: str
    message: str


class Commit(Schema):
    id: Sha1
    title: str
    message: str
    authors: list[CommitAuthor]
    date: Timestamp
    parents: list[Sha1]
    formatted: Formatted | MISSING = MISSING

    @classmethod
    def of(cls, commit: CommitInfo, *, formatted: bool) -> Self:
        shown: dict[str, Any] = {
            "id": commit.id,
            "title": commit.title,
            "message": commit.message,
            "authors": [{"user": user_of(commit.author_email) or commit.author_name}],
            "date": commit.date,
            "parents": list(commit.parents),
        }
        if formatted:
            shown["formatted"] = {
                "title": escape(commit.title),
                "message": escape(commit.message),
            }
        return cls.model_validate(shown)
