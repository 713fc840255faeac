"""Schemas of commits, of advice before an upload, and of the check of a card."""

from base64 import b64decode
from typing import Annotated, Literal, Self

from pydantic import MISSING, AfterValidator, Field

from hublet.core.schema import Schema
from hublet.repos.commits.preupload import FileAdvice, Offer, OfferedFile
from hublet.repos.schemas import Sha1, Sha256


class CommitMade(Schema):
    """The commit, or the last one of the branch when nothing changed."""

    success: Literal[True] = True
    commitUrl: str
    commitOid: Sha1
    pullRequestUrl: str | MISSING = MISSING
    hookOutput: str = ""


def _check_base64(text: str) -> str:
    try:
        b64decode(text, validate=True)
    except ValueError:
        raise ValueError("must be base64") from None
    return text


class FileToUpload(Schema):
    path: Annotated[str, Field(max_length=4096)]
    # Base64 of the first bytes: a file that is no text goes to LFS.
    sample: Annotated[str, Field(max_length=1024), AfterValidator(_check_base64)] | MISSING = (
        MISSING
    )
    size: Annotated[int, Field(ge=0)] | MISSING = MISSING
    # The JavaScript client may send the digest it knows.
    sha: str | MISSING = MISSING

    def offered(self) -> OfferedFile:
        return OfferedFile(
            path=self.path,
            size=None if self.size is MISSING else self.size,
            sample=b"" if self.sample is MISSING else b64decode(self.sample),
        )


class Preupload(Schema):
    """Files that somebody is about to upload."""

    files: Annotated[list[FileToUpload], Field(max_length=1000)]
    # The .gitignore to go by instead of the one in the repository.
    gitIgnore: Annotated[str, Field(max_length=65536)] | MISSING = MISSING
    # The .gitattributes likewise.
    gitAttributes: Annotated[str, Field(max_length=1 << 20)] | MISSING = MISSING

    def offer(self) -> Offer:
        return Offer(
            files=[file.offered() for file in self.files],
            ignore=None if self.gitIgnore is MISSING else self.gitIgnore,
            attributes=None if self.gitAttributes is MISSING else self.gitAttributes,
        )


class UploadAdvice(Schema):
    """How to upload a file, and the id of its present content, where there is one.

    What is `lfs` goes through Xet or LFS, and a commit names it by its SHA-256, as `oid` does here;
    what is `regular` goes into the commit.
    """

    path: str
    uploadMode: Literal["regular", "lfs"]
    shouldIgnore: bool
    oid: Sha1 | Sha256 | MISSING = MISSING

    @classmethod
    def of(cls, advice: FileAdvice) -> Self:
        return cls(
            path=advice.path,
            uploadMode="lfs" if advice.is_lfs else "regular",
            shouldIgnore=advice.is_ignored,
            oid=MISSING if advice.oid is None else advice.oid,
        )


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
