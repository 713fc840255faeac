"""The lines of a batch, and its answers, on the wire."""

from typing import Annotated, Literal

from pydantic import MISSING, Field, StringConstraints, TypeAdapter

from hublet.core.schema import Schema
from hublet.repos.schemas import RepoTypeName

# Milliseconds since 1970, up to the year 9999.
Milliseconds = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
AnyHash = Annotated[str, StringConstraints(max_length=200)]


class AddFile(Schema):
    """Put a file whose content is here in base64, or is that of another file of the bucket."""

    type: Literal["addFile"]
    path: str
    content: str | MISSING = MISSING
    sha256: Digest | MISSING = MISSING
    xetHash: AnyHash | None = None
    mtime: Milliseconds | MISSING = MISSING
    contentType: str | None = None


class CopyFile(Schema):
    """Put a file whose content another repository of this hub has."""

    type: Literal["copyFile"]
    path: str
    sha256: Digest | MISSING = MISSING
    xetHash: AnyHash | None = None
    mtime: Milliseconds | MISSING = MISSING
    contentType: str | None = None
    sourceRepoType: RepoTypeName
    sourceRepoId: Annotated[str, StringConstraints(pattern="^[^/]+/[^/]+$", max_length=200)]


class DeleteFile(Schema):
    """Remove a file; that there is none is fine."""

    type: Literal["deleteFile"]
    path: str


Operation = Annotated[AddFile | CopyFile | DeleteFile, Field(discriminator="type")]
operation: TypeAdapter[AddFile | CopyFile | DeleteFile] = TypeAdapter(Operation)


class FailedOperation(Schema):
    path: str
    error: str


class BatchDone(Schema):
    """Every operation was done."""

    success: Literal[True] = True
    processed: int
    succeeded: int
    failed: tuple[FailedOperation, ...] = ()


class BatchRefused(Schema):
    """Nothing was done, because of these operations."""

    error: str
    failed: list[FailedOperation]
