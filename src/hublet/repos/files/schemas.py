"""Files of buckets and containers on the wire."""

from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import Schema, Timestamp
from hublet.repos.files import records

MAX_PATHS = 1000


class BucketFile(Schema):
    """A file; its content is what its SHA-256 says."""

    type: Literal["file"] = "file"
    path: str
    size: int
    sha256: str
    # The public client cannot read a file without it, and hands it back to copy the file. Here
    # contents are known by their SHA-256, so that is what it gets.
    xetHash: str
    mtime: Timestamp
    uploadedAt: Timestamp
    contentType: str | MISSING = MISSING

    @classmethod
    def of(cls, file: records.File) -> Self:
        return cls(
            path=file.path,
            size=file.size,
            sha256=file.sha256,
            xetHash=file.sha256,
            mtime=file.modified_at,
            uploadedAt=file.uploaded_at,
            contentType=file.media_type or MISSING,
        )


class BucketFolder(Schema):
    """A folder; it is there because files are in it."""

    type: Literal["directory"] = "directory"
    path: str


BucketEntry = Annotated[BucketFile | BucketFolder, Field(discriminator="type")]


def shown(entry: records.Entry) -> BucketFile | BucketFolder:
    if isinstance(entry, records.Folder):
        return BucketFolder(path=entry.path)
    return BucketFile.of(entry)


class AskedPaths(Schema):
    paths: Annotated[list[str], Field(max_length=MAX_PATHS)]
