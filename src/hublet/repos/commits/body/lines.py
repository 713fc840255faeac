"""The lines of a commit as they are spelled: an object each, with a key and a value."""

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

Sha1 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class HeaderValue(Struct, forbid_unknown_fields=True):
    summary: Annotated[str, msgspec.Meta(min_length=1)]
    description: str = ""
    parent_commit: Sha1 | None = msgspec.field(default=None, name="parentCommit")


class FileValue(Struct, forbid_unknown_fields=True):
    path: str
    content: str
    encoding: Literal["base64"]


class LfsFileValue(Struct, forbid_unknown_fields=True):
    path: str
    oid: Sha256
    algo: Literal["sha256"] = "sha256"
    size: Annotated[int, msgspec.Meta(ge=0)] | None = None


class PathValue(Struct, forbid_unknown_fields=True):
    path: str


class HeaderLine(Struct, tag_field="key", tag="header", forbid_unknown_fields=True):
    value: HeaderValue


class FileLine(Struct, tag_field="key", tag="file", forbid_unknown_fields=True):
    value: FileValue


class LfsFileLine(Struct, tag_field="key", tag="lfsFile", forbid_unknown_fields=True):
    value: LfsFileValue


class DeletedFileLine(Struct, tag_field="key", tag="deletedFile", forbid_unknown_fields=True):
    value: PathValue


class DeletedFolderLine(Struct, tag_field="key", tag="deletedFolder", forbid_unknown_fields=True):
    value: PathValue


Line = HeaderLine | FileLine | LfsFileLine | DeletedFileLine | DeletedFolderLine

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def decode(line: bytes) -> Line:
    """Return what a line says; raise msgspec's DecodeError or ValidationError."""
    return _decoder.decode(line)
