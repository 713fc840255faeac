"""Commit parser: reads the NDJSON body while it arrives, in bounded memory."""

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from hublet.repos.commits.operations import (
    AddFile,
    AddLfsFile,
    Base64Decoder,
    CommitHeader,
    DeleteFile,
    DeleteFolder,
    FileContent,
    InvalidBase64,
    Operation,
)
from hublet.repos.commits.scanner import LONGEST_LINE, BrokenString, LineTooLong, Scanner
from hublet.repos.errors import CommitTooLarge, InvalidCommit, InvalidCommitLine
from hublet.storage.object_store import ObjectStore

MOST_OPERATIONS = 100_000

_KEYS = "header, file, lfsFile, deletedFile or deletedFolder"

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


CommitLine = HeaderLine | FileLine | LfsFileLine | DeletedFileLine | DeletedFolderLine

_decoder: msgspec.json.Decoder[CommitLine] = msgspec.json.Decoder(CommitLine)


def decode_line(line: bytes) -> CommitLine:
    """Return the decoded line; raise msgspec's DecodeError or ValidationError."""
    return _decoder.decode(line)


class CommitParser:
    """Feed it the body, then `finish`; `take` gets each operation when its line is complete.

    `take` closes the content of an AddFile. The parser cannot be used after an error.
    """

    def __init__(
        self, store: ObjectStore, take: Callable[[Operation], None], *, largest_file: int
    ) -> None:
        self.header: CommitHeader | None = None
        self._store = store
        self._take = take
        self._largest_file = largest_file
        self._scanner = Scanner(self)
        self._line = 1
        self._operations = 0
        self._decoder: Base64Decoder | None = None
        self._content: FileContent | None = None

    def feed(self, data: bytes) -> None:
        self._scan(lambda: self._scanner.feed(data))

    def finish(self) -> CommitHeader:
        self._scan(self._scanner.finish)
        if self.header is None:
            raise InvalidCommit("The body is empty; its first line must be the header.")
        return self.header

    @property
    def has_spool(self) -> bool:
        return self._content is not None and self._content.spool is not None

    def close(self) -> None:
        """Close the content of a line that is not complete; nothing can be fed any more."""
        if self._content is not None:
            self._content.close()
        # They refer back to this, and a server collects garbage rarely.
        self._scanner.close()
        vars(self).pop("_take", None)

    def _scan(self, scan: Callable[[], None]) -> None:
        try:
            scan()
        except LineTooLong:
            raise self._invalid(
                f"it must have at most {LONGEST_LINE} bytes beside the content of a file."
            ) from None
        except BrokenString:
            raise self._invalid("it is not valid JSON; a string in it does not end.") from None
        except InvalidBase64:
            raise self._invalid("content must be base64.") from None

    def begin_content(self) -> None:
        if self._content is not None:
            raise self._invalid("content must be there once.")
        self._content = FileContent(self._store)
        self._decoder = Base64Decoder(self._content)

    def take_content(self, text: bytes) -> None:
        if self._decoder is None or self._content is None:
            raise self._invalid("content must be one string.")
        self._decoder.feed(text)
        if self._content.size > self._largest_file:
            raise CommitTooLarge(
                f"Line {self._line}: a file must have at most {self._largest_file} bytes."
            )

    def end_content(self) -> None:
        if self._decoder is not None:
            self._decoder.end()
        self._decoder = None

    def end_line(self, line: bytes) -> None:
        if line.strip():
            self._handle_line(self._decode(line))
        self._line += 1

    def _decode(self, line: bytes) -> CommitLine:
        try:
            return decode_line(line)
        except msgspec.ValidationError as error:
            raise self._invalid(_explain(str(error))) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._invalid("it is not valid JSON.") from None

    def _handle_line(self, line: CommitLine) -> None:
        if isinstance(line, HeaderLine):
            self._take_header(line.value)
            return
        if self.header is None:
            raise self._invalid("the header must come first.")
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            raise CommitTooLarge(
                f"Line {self._line}: a commit must have at most {MOST_OPERATIONS} operations."
            )
        self._take(self._operation(line))

    def _take_header(self, value: HeaderValue) -> None:
        if self.header is not None:
            raise self._invalid("there must be one header only.")
        if "\x00" in value.summary + value.description:
            raise self._invalid("text must not contain the NUL character.")
        if not value.summary.strip():
            raise self._invalid("summary must not be blank.")
        self.header = CommitHeader(
            summary=value.summary, description=value.description, parent=value.parent_commit
        )

    def _operation(self, line: CommitLine) -> Operation:
        match line:
            case FileLine(value=value):
                return AddFile(path=value.path, content=self._content_of(value))
            case LfsFileLine(value=value):
                return AddLfsFile(path=value.path, sha256=value.oid, size=value.size)
            case DeletedFileLine(value=value):
                return DeleteFile(path=value.path)
            case DeletedFolderLine(value=value):
                return DeleteFolder(path=value.path.removesuffix("/"))
            case _:  # pragma: no cover - headers were taken before
                raise self._invalid(f"key must be {_KEYS}.")

    def _content_of(self, value: FileValue) -> FileContent:
        content = self._content
        if content is None:
            # The member's name was spelled with escapes, so it looked like any other string.
            content = FileContent(self._store)
            decoder = Base64Decoder(content)
            decoder.feed(value.content.encode())
            decoder.end()
        self._content = None
        return content

    def _invalid(self, rule: str) -> InvalidCommitLine:
        return InvalidCommitLine(self._line, rule)


def _explain(message: str) -> str:
    """Return the rule from a message of msgspec, which names the field as `$.value.path`."""
    if message.startswith("Invalid value") and message.endswith("`$.key`"):
        return f"key must be {_KEYS}."
    rule, _, location = message.rpartition(" - at ")
    field = location.strip("`").removeprefix("$").removeprefix(".")
    if rule.startswith("Invalid enum value"):
        # The value is not repeated: it may be long.
        rule = "Invalid value"
    return f"{field}: {rule}." if rule else f"{location}."
