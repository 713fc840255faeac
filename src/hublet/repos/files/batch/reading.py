"""Reads a batch: one operation in JSON on each line."""

import base64
from collections.abc import AsyncIterable

from pydantic import MISSING, ValidationError

from hublet.core.clock import from_micros
from hublet.core.errors import InvalidRequest
from hublet.core.http.validation import sentences
from hublet.repos.files.batch.errors import BatchTooLarge, InvalidLine, TooManyOperations
from hublet.repos.files.batch.records import Addition
from hublet.repos.files.batch.schemas import AddFile, CopyFile, DeleteFile, operation
from hublet.repos.files.media import check_media_type, media_type_of
from hublet.repos.files.records import Removal
from hublet.repos.records import RepoAddress, RepoType

MAX_OPERATIONS = 1000
# What the contents of a batch may take in memory; a file that is larger goes by PUT.
MAX_BYTES = 8 << 20


async def read_batch(chunks: AsyncIterable[bytes]) -> list[Addition | Removal]:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            raise BatchTooLarge(MAX_BYTES)
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
    if not 1 <= len(lines) <= MAX_OPERATIONS:
        raise TooManyOperations(MAX_OPERATIONS)
    return [_read(number, line) for number, line in lines]


def _read(number: int, line: bytearray) -> Addition | Removal:
    try:
        found = operation.validate_json(line)
        return Removal(path=found.path) if isinstance(found, DeleteFile) else _addition(found)
    except ValidationError as error:
        raise InvalidLine(number, _problems(error)) from None
    except InvalidRequest as error:
        raise InvalidLine(number, error.message) from None


def _problems(error: ValidationError) -> str:
    found = error.errors()
    if found[0]["type"].startswith("union_tag"):
        return "type must be addFile, copyFile or deleteFile."
    # The first step of a place is the type of the operation, where a request has its body.
    return sentences([each | {"loc": ("body", *each["loc"][1:])} for each in found])


def _addition(found: AddFile | CopyFile) -> Addition:
    media_type = found.contentType or media_type_of(found.path)
    check_media_type(media_type)
    return Addition(
        path=found.path,
        content=_content(found) if isinstance(found, AddFile) else None,
        sha256=found.xetHash if found.sha256 is MISSING else found.sha256,
        source=_source(found) if isinstance(found, CopyFile) else None,
        media_type=media_type,
        modified_at=None if found.mtime is MISSING else from_micros(found.mtime * 1000),
    )


def _content(found: AddFile) -> bytes | None:
    if found.content is MISSING:
        return None
    try:
        return base64.b64decode(found.content, validate=True)
    except ValueError:
        raise InvalidRequest("content must be base64.") from None


def _source(found: CopyFile) -> RepoAddress:
    namespace, _, name = found.sourceRepoId.partition("/")
    return RepoAddress(type=RepoType(found.sourceRepoType), namespace=namespace, name=name)
