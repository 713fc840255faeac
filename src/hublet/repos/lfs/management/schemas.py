"""Large files of a repository on the wire."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Schema, Timestamp
from hublet.repos.lfs.management.records import LfsFile

MOST_FILES = 1000

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ListedLfsFile(Schema):
    """A large file that a repository has, and a name it goes by where one is known."""

    fileOid: Sha256
    oid: Sha256
    filename: str
    size: int
    pushedAt: Timestamp
    ref: str | MISSING = MISSING

    @classmethod
    def of(cls, file: LfsFile) -> Self:
        shown: dict[str, Any] = {
            "fileOid": file.blob.sha256,
            "oid": file.blob.sha256,
            "filename": file.path or "",
            "size": file.blob.size,
            "pushedAt": file.blob.pushed_at,
        }
        if file.ref is not None:
            shown["ref"] = file.ref
        return cls.model_validate(shown)


class Deletions(Schema):
    sha: Annotated[list[Sha256], Field(min_length=1, max_length=MOST_FILES)]
    rewriteHistory: bool = False


class ChangeLfsFiles(Schema):
    deletions: Deletions


class TargetRepo(Schema):
    type: Literal["model", "dataset", "space", "kernel"]
    name: str


class CopiedFile(Schema):
    sha256: Sha256
    filename: str
    xetHash: str | MISSING = MISSING


class CopyLfsFiles(Schema):
    target: TargetRepo
    files: Annotated[list[CopiedFile], Field(max_length=MOST_FILES)]


class FailedCopy(Schema):
    sha256: Sha256
    error: str


class CopiedLfsFiles(Schema):
    """Which of the files the target may not point to, and why."""

    failed: list[FailedCopy]
