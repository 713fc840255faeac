"""Schemas of commits, of advice before an upload, and of the check of a card."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from hublet.core.schema import Schema
from hublet.repos.schemas import Sha1


class CommitMade(Schema):
    """The commit, or the last one of the branch when nothing changed."""

    success: Literal[True] = True
    commitUrl: str
    commitOid: Sha1
    pullRequestUrl: str | MISSING = MISSING
    hookOutput: str = ""


class FileToUpload(Schema):
    path: Annotated[str, Field(max_length=4096)]
    # Base64 of the first bytes; this hub decides without them.
    sample: Annotated[str, Field(max_length=1024)] | MISSING = MISSING
    size: Annotated[int, Field(ge=0)] | MISSING = MISSING
    # The JavaScript client may send the digest it knows.
    sha: str | MISSING = MISSING


class Preupload(Schema):
    """Files that somebody is about to upload."""

    files: Annotated[list[FileToUpload], Field(max_length=1000)]
    # The .gitignore to go by instead of the one in the repository.
    gitIgnore: Annotated[str, Field(max_length=65536)] | MISSING = MISSING
    # Accepted for the JavaScript client; every file is uploaded in the same way here.
    gitAttributes: str | MISSING = MISSING


class UploadAdvice(Schema):
    """How to upload a file, and what git calls its present content, where there is one."""

    path: str
    uploadMode: Literal["regular"] = "regular"
    shouldIgnore: bool
    oid: Sha1 | MISSING = MISSING


class PreuploadAdvice(Schema):
    files: list[UploadAdvice]


class ValidateYaml(Schema):
    """A whole README.md, to be looked at before it is uploaded."""

    content: str
    repoType: Literal["model", "dataset", "space", "kernel"] | MISSING = MISSING


class Remark(Schema):
    message: str


class YamlVerdict(Schema):
    """The metadata is good; warnings are worth reading."""

    errors: list[Remark]
    warnings: list[Remark]


class YamlRefused(Schema):
    """What is wrong with the metadata: everything in one sentence, and each problem alone."""

    error: str
    errors: list[Remark] | MISSING = MISSING
    warnings: list[Remark] | MISSING = MISSING
