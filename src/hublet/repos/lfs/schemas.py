"""Schemas of Git LFS, as its own specification and the public clients have them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Flag, Schema, Timestamp
from hublet.repos.lfs.records import LocatedLfsFile, ObjectResponse, TransferAction
from hublet.repos.schemas import Sha256

Transfer = Literal["basic", "multipart", "xet"]

MOST_OBJECTS = 1000
MOST_FILES = 1000


class LfsRef(Schema):
    name: str


class WantedObject(Schema):
    oid: str
    size: int
    # Git LFS may tell more of a file; it changes nothing.
    name: str | MISSING = MISSING
    path: str | MISSING = MISSING
    authenticated: Flag | MISSING = MISSING


class LfsBatch(Schema):
    operation: Literal["upload", "download"]
    transfers: tuple[str, ...] = ("basic",)
    objects: Annotated[list[WantedObject], Field(max_length=MOST_OBJECTS)]
    hash_algo: Literal["sha256", "sha_256"] = "sha256"
    ref: LfsRef | None = None


class LfsAction(Schema):
    """Where to send or get the bytes; no token is needed there.

    With `chunk_size` in the header the object goes up in parts of that size: each to the
    address under its number, counted from 1. A POST to `href` then puts them together. With the
    transfer `xet` the header has the access to the CAS, and `href` gives a new one.
    """

    href: str
    header: dict[str, str] | MISSING = MISSING
    expires_in: int | MISSING = MISSING

    @classmethod
    def of(cls, action: TransferAction, *, expires_in: int | None) -> Self:
        fields: dict[str, Any] = {"href": action.href}
        if action.header:
            fields["header"] = dict(action.header)
        if expires_in is not None:
            fields["expires_in"] = expires_in
        return cls.model_validate(fields)


class LfsActions(Schema):
    upload: LfsAction | MISSING = MISSING
    download: LfsAction | MISSING = MISSING
    verify: LfsAction | MISSING = MISSING


class LfsError(Schema):
    code: int
    message: str


class LfsObject(Schema):
    """One object of the answer; without actions and error it is on the hub already."""

    oid: str
    size: int
    actions: LfsActions | MISSING = MISSING
    error: LfsError | MISSING = MISSING

    @classmethod
    def of(cls, response: ObjectResponse, *, expires_in: int) -> Self:
        fields: dict[str, Any] = {"oid": response.request.oid, "size": response.request.size}
        if response.refusal is not None:
            fields["error"] = {"code": response.refusal.code, "message": response.refusal.message}
        actions = {
            name: LfsAction.of(action, expires_in=None if name == "verify" else expires_in)
            for name in ("upload", "download", "verify")
            if (action := getattr(response, name)) is not None
        }
        if actions:
            fields["actions"] = actions
        return cls.model_validate(fields)


class LfsBatchAnswer(Schema):
    transfer: Transfer
    objects: list[LfsObject]
    hash_algo: Literal["sha256"] = "sha256"

    @classmethod
    def of(
        cls, responses: Sequence[ObjectResponse], *, life: timedelta, transfer: Transfer = "basic"
    ) -> Self:
        if any(each.upload and "chunk_size" in each.upload.header for each in responses):
            transfer = "multipart"
        seconds = round(life.total_seconds())
        return cls(
            transfer=transfer,
            objects=[LfsObject.of(each, expires_in=seconds) for each in responses],
        )


class VerifyObject(Schema):
    oid: str
    size: int


class LinkQuery(Schema):
    """What makes an address good by itself."""

    size: Annotated[int, Field(ge=0, lt=2**63)]
    expires: Annotated[int, Field(ge=0, lt=2**63)]
    signature: str
    # How many parts there are to put together.
    count: Annotated[int, Field(ge=0, lt=2**31)] = 0
    # The upload to the object storage, if the parts went there.
    upload: Annotated[str, Field(pattern=r"^([0-9a-f]{24})?$")] = ""


class CompletedPart(Schema):
    partNumber: int
    # As it was answered, with or without its quotes; an object storage has other ones than the hub.
    etag: Annotated[str, Field(pattern=r'^"?[0-9A-Za-z_-]{1,128}"?$')]


class CompleteUpload(Schema):
    oid: str
    parts: Annotated[list[CompletedPart], Field(max_length=10_000)]


class ListedLocks(Schema):
    """This hub has no locks."""

    locks: list[None] = Field(default_factory=list)


class VerifiedLocks(Schema):
    """This hub has no locks, so nobody's are in the way of a push."""

    ours: list[None] = Field(default_factory=list)
    theirs: list[None] = Field(default_factory=list)


class VerifyLocks(Schema):
    ref: LfsRef | None = None
    cursor: str | None = None
    limit: int | None = None


class ListedLfsFile(Schema):
    """A large file that a repository has, and a name it goes by where one is known."""

    fileOid: Sha256
    oid: Sha256
    filename: str
    size: int
    pushedAt: Timestamp
    ref: str | MISSING = MISSING

    @classmethod
    def of(cls, file: LocatedLfsFile) -> Self:
        fields: dict[str, Any] = {
            "fileOid": file.blob.sha256,
            "oid": file.blob.sha256,
            "filename": file.path or "",
            "size": file.blob.size,
            "pushedAt": file.blob.pushed_at,
        }
        if file.ref is not None:
            fields["ref"] = file.ref
        return cls.model_validate(fields)


class Deletions(Schema):
    sha: Annotated[list[Sha256], Field(min_length=1, max_length=MOST_FILES)]
    rewriteHistory: Flag = False


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

    success: bool
    processed: int
    succeeded: int
    failed: list[FailedCopy]

    @classmethod
    def of(cls, *, asked: int, missing: Sequence[str]) -> Self:
        sentence = "The repository has no such file."
        return cls(
            success=not missing,
            processed=asked,
            succeeded=asked - len(missing),
            failed=[FailedCopy(sha256=each, error=sentence) for each in missing],
        )
