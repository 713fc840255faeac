"""Reads the body of a commit while it arrives, in chunks of any size and in bounded memory."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from hublet.repos.commits.body import lines
from hublet.repos.commits.body.contents import Base64Decoder, Content, InvalidBase64
from hublet.repos.commits.body.scanning import LONGEST_LINE, BrokenString, LineTooLong, Scanner
from hublet.repos.commits.errors import CommitTooLarge, InvalidCommit, InvalidLine
from hublet.repos.commits.records import (
    AddFile,
    AddLfsFile,
    DeleteFile,
    DeleteFolder,
    Header,
    Operation,
)

MOST_OPERATIONS = 100_000

_KEYS = "header, file, lfsFile, deletedFile or deletedFolder"


class CommitParser:
    """Feed it the body, then `finish`; each operation is handed on when its line is complete.

    Whoever takes an AddFile closes its content. An error leaves the parser of no use.
    """

    def __init__(
        self, data_dir: Path, take: Callable[[Operation], None], *, largest_file: int
    ) -> None:
        self.header: Header | None = None
        self._data_dir = data_dir
        self._take = take
        self._largest_file = largest_file
        self._scanner = Scanner(self)
        self._line = 1
        self._operations = 0
        self._decoder: Base64Decoder | None = None
        self._content: Content | None = None

    def feed(self, data: bytes) -> None:
        self._guarded(lambda: self._scanner.feed(data))

    def finish(self) -> Header:
        self._guarded(self._scanner.finish)
        if self.header is None:
            raise InvalidCommit("The body is empty; its first line must be the header.")
        return self.header

    def close(self) -> None:
        """Forget what was not handed on."""
        if self._content is not None:
            self._content.close()

    def _guarded(self, scan: Callable[[], None]) -> None:
        try:
            scan()
        except LineTooLong:
            raise self._wrong(
                f"it must have at most {LONGEST_LINE} bytes beside the content of a file."
            ) from None
        except BrokenString:
            raise self._wrong("it is not valid JSON; a string in it does not end.") from None
        except InvalidBase64:
            raise self._wrong("content must be base64.") from None

    def begin_content(self) -> None:
        if self._content is not None:
            raise self._wrong("content must be there once.")
        self._content = Content(self._data_dir)
        self._decoder = Base64Decoder(self._content)

    def take_content(self, text: bytes) -> None:
        if self._decoder is None or self._content is None:
            raise self._wrong("content must be one string.")
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
            self._understand(self._decoded(line))
        self._line += 1

    def _decoded(self, line: bytes) -> lines.Line:
        try:
            return lines.decode(line)
        except msgspec.ValidationError as error:
            raise self._wrong(_told(str(error))) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._wrong("it is not valid JSON.") from None

    def _understand(self, line: lines.Line) -> None:
        if isinstance(line, lines.HeaderLine):
            self._take_header(line.value)
            return
        if self.header is None:
            raise self._wrong("the header must come first.")
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            raise CommitTooLarge(
                f"Line {self._line}: a commit must have at most {MOST_OPERATIONS} operations."
            )
        self._take(self._operation(line))

    def _take_header(self, value: lines.HeaderValue) -> None:
        if self.header is not None:
            raise self._wrong("there must be one header only.")
        if "\x00" in value.summary + value.description:
            raise self._wrong("text must not contain the NUL character.")
        if not value.summary.strip():
            raise self._wrong("summary must not be blank.")
        self.header = Header(
            summary=value.summary, description=value.description, parent=value.parent_commit
        )

    def _operation(self, line: lines.Line) -> Operation:
        match line:
            case lines.FileLine(value=value):
                return AddFile(path=value.path, content=self._content_of(value))
            case lines.LfsFileLine(value=value):
                return AddLfsFile(path=value.path, sha256=value.oid, size=value.size)
            case lines.DeletedFileLine(value=value):
                return DeleteFile(path=value.path)
            case lines.DeletedFolderLine(value=value):
                return DeleteFolder(path=value.path.removesuffix("/"))
            case _:  # pragma: no cover - headers were taken before
                raise self._wrong(f"key must be {_KEYS}.")

    def _content_of(self, value: lines.FileValue) -> Content:
        content = self._content
        if content is None:
            # The member's name was spelled with escapes, so it looked like any other string.
            content = Content(self._data_dir)
            decoder = Base64Decoder(content)
            decoder.feed(value.content.encode())
            decoder.end()
        self._content = None
        return content

    def _wrong(self, rule: str) -> InvalidLine:
        return InvalidLine(self._line, rule)


def _told(message: str) -> str:
    """Turn msgspec's words into the rule: `$.value.path` is how it says which field."""
    if message.startswith("Invalid value") and message.endswith("`$.key`"):
        return f"key must be {_KEYS}."
    rule, _, place = message.rpartition(" - at ")
    field = place.strip("`").removeprefix("$").removeprefix(".")
    if rule.startswith("Invalid enum value"):
        # What was sent is not repeated: it may be long.
        rule = "Invalid value"
    return f"{field}: {rule}." if rule else f"{place}."
