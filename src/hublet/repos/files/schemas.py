"""Schemas of buckets and containers, of their files, and of batches of changes."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints, TypeAdapter

from hublet.core.schema import Flag, ObjectId, Schema, Timestamp
from hublet.repos.files import records
from hublet.repos.records import Repo
from hublet.repos.schemas import Ignored, RepoTypeName, Sha256

MAX_PATHS = 1000


class BucketFile(Schema):
    """A file; its content is what its SHA-256 says."""

    type: Literal["file"] = "file"
    path: str
    size: int
    sha256: str
    # The file hash of Xet, by which the public clients download and copy; null until the content
    # is cut into chunks. They cannot read an entry without the field.
    xetHash: str | None
    mtime: Timestamp
    uploadedAt: Timestamp
    contentType: str | MISSING = MISSING

    @classmethod
    def of(cls, file: records.File) -> Self:
        return cls(
            path=file.path,
            size=file.size,
            sha256=file.sha256,
            xetHash=file.xet_hash,
            mtime=file.modified_at,
            uploadedAt=file.uploaded_at,
            contentType=file.media_type or MISSING,
        )


class BucketFolder(Schema):
    """A folder; it is there because files are in it, and has the time of the first by path."""

    type: Literal["directory"] = "directory"
    path: str
    uploadedAt: Timestamp


BucketEntry = Annotated[BucketFile | BucketFolder, Field(discriminator="type")]


def bucket_entry(entry: records.FileOrFolder) -> BucketFile | BucketFolder:
    if isinstance(entry, records.Folder):
        return BucketFolder(path=entry.path, uploadedAt=entry.uploaded_at)
    return BucketFile.of(entry)


class AskedPaths(Schema):
    paths: Annotated[list[str], Field(max_length=MAX_PATHS)]


# Milliseconds since 1970, up to the year 9999.
Milliseconds = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
AnyHash = Annotated[str, StringConstraints(max_length=200)]


class AddFileOperation(Schema):
    """Put a file whose content is here in base64, was uploaded by Xet, or is another file's."""

    type: Literal["addFile"]
    path: str
    content: str | MISSING = MISSING
    sha256: Sha256 | MISSING = MISSING
    xetHash: AnyHash | None = None
    mtime: Milliseconds | MISSING = MISSING
    contentType: str | None = None


class CopyFileOperation(Schema):
    """Put a file whose content another repository of this hub has."""

    type: Literal["copyFile"]
    path: str
    sha256: Sha256 | MISSING = MISSING
    xetHash: AnyHash | None = None
    mtime: Milliseconds | MISSING = MISSING
    contentType: str | None = None
    sourceRepoType: RepoTypeName
    sourceRepoId: Annotated[str, StringConstraints(pattern="^[^/]+/[^/]+$", max_length=200)]


class DeleteFileOperation(Schema):
    """Remove a file; that there is none is fine."""

    type: Literal["deleteFile"]
    path: str


BatchOperation = Annotated[
    AddFileOperation | CopyFileOperation | DeleteFileOperation, Field(discriminator="type")
]
batch_operation: TypeAdapter[AddFileOperation | CopyFileOperation | DeleteFileOperation] = (
    TypeAdapter(BatchOperation)
)


class FailedOperation(Schema):
    path: str
    error: str


class BatchDone(Schema):
    """What was done of a batch: all operations but those that failed."""

    # Whether none failed.
    success: bool
    processed: int
    succeeded: int
    failed: list[FailedOperation]


class BatchRefused(Schema):
    """Every operation failed, so nothing was done."""

    error: str
    success: Literal[False]
    processed: int
    succeeded: Literal[0]
    failed: list[FailedOperation]


class CreateBucket(Schema):
    private: Flag | MISSING = MISSING
    visibility: Literal["public", "private"] | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING
    region: Ignored = None


class UpdateBucket(Schema):
    """A field that is left out keeps its value."""

    private: Flag | MISSING = MISSING
    visibility: Literal["public", "private"] | MISSING = MISSING
    discussionsDisabled: Flag | MISSING = MISSING


class Bucket(Schema):
    """What is known of a bucket; its `id` is owner/name."""

    id: str
    author: str
    private: bool
    visibility: Literal["public", "private"]
    createdAt: Timestamp
    updatedAt: Timestamp
    size: int
    totalFiles: int

    @classmethod
    def of(cls, repo: Repo) -> Self:
        fields: dict[str, Any] = {
            "id": repo.full_name,
            "author": repo.owner_name,
            "private": repo.is_private,
            "visibility": repo.visibility,
            "createdAt": repo.created_at,
            "updatedAt": repo.updated_at,
            "size": repo.size,
            "totalFiles": repo.total_files,
        }
        return cls.model_validate(fields)
