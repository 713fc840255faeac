"""Upload forms: multipart bodies that are read piece by piece, content of files straight to the disk.

The fields of a form stand before its files, its token among them: a form that another site sent is
refused before a byte of a file is taken.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from hublet.core.dataclasses import dataclass
from hublet.core.errors import TooLarge
from hublet.core.pages import bytes_text
from hublet.repos.commits.operations import FileContent
from hublet.repos.errors import InvalidUpload
from hublet.storage.object_store import ObjectStore

MOST_FILES = 1000
MOST_FIELDS = 100
# All fields together: the text of a file, and what is said about it.
MOST_FIELD_BYTES = 4 << 20

# Bytes of the body that go to a thread at a time.
_CHUNK = 1 << 20
# What browsers write instead of characters that would end a name.
_ESCAPES = (("%0D", "\r"), ("%0A", "\n"), ("%22", '"'))

FormCheck = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file of a form; its name has the folders that it was in, if a folder was chosen."""

    name: str
    content: FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadForm:
    fields: dict[str, str] = field(default_factory=dict)
    files: list[UploadedFile] = field(default_factory=list)


@asynccontextmanager
async def read_upload(
    body: AsyncIterable[bytes],
    content_type: str,
    *,
    store: ObjectStore,
    largest: int,
    check: FormCheck,
) -> AsyncIterator[UploadForm]:
    """Read a form with files of at most `largest` bytes, which are removed afterwards.

    `check` sees the fields before the first file is read; a form without files is checked too.
    """
    reader = _FormReader(content_type, store, largest=largest, check=check)
    try:
        waiting = bytearray()
        async for data in body:
            waiting += data
            if len(waiting) >= _CHUNK:
                await asyncio.to_thread(reader.feed, bytes(waiting))
                waiting.clear()
        await asyncio.to_thread(reader.feed, bytes(waiting))
        yield reader.finish()
    finally:
        await asyncio.to_thread(reader.close)


class _FormReader:
    """Takes a multipart body in pieces of any size. Blocks on the disk."""

    def __init__(
        self, content_type: str, store: ObjectStore, *, largest: int, check: FormCheck
    ) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise _unreadable()
        self._form = UploadForm()
        self._store = store
        self._largest = largest
        self._check = check
        self._is_checked = False
        self._field_bytes = 0
        self._is_complete = False
        # The part that is being read.
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._field = ""
        self._text = bytearray()
        self._file: UploadedFile | None = None
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._begin_part,
                "on_header_begin": self._begin_header,
                "on_header_field": self._take_header_name,
                "on_header_value": self._take_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._open_part,
                "on_part_data": self._take_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def feed(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except FormParserError:
            raise _unreadable() from None

    def finish(self) -> UploadForm:
        if not self._is_complete:
            raise _unreadable()
        self._check_once()
        return self._form

    def close(self) -> None:
        for file in self._form.files:
            file.content.close()

    def _begin_part(self) -> None:
        self._disposition = b""
        self._field = ""
        self._text = bytearray()
        self._file = None

    def _begin_header(self) -> None:
        self._header_name = self._header_value = b""

    def _take_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _take_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value

    def _open_part(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._field = _text_of(options.get(b"name", b""))
        if b"filename" not in options:
            return
        self._check_once()
        # A field for files without any sends one that has no name.
        if (name := _unescape(_text_of(options[b"filename"]))) == "":
            self._field = ""
            return
        if len(self._form.files) >= MOST_FILES:
            raise TooLarge(f"A form must have at most {MOST_FILES} files; use git or the client.")
        self._file = UploadedFile(name=name, content=FileContent(self._store))
        self._form.files.append(self._file)

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            content = self._file.content
            if content.size + end - start > self._largest:
                raise TooLarge(f"{self._file.name} is larger than {bytes_text(self._largest)}.")
            content.write(data[start:end])
            return
        self._field_bytes += end - start
        if self._field_bytes > MOST_FIELD_BYTES:
            raise TooLarge(f"The fields of a form must have at most {MOST_FIELD_BYTES} bytes.")
        self._text += data[start:end]

    def _end_part(self) -> None:
        if self._file is not None or not self._field:
            return
        text = _text_of(bytes(self._text))
        # Nothing that the hub stores as text may have it.
        if "\x00" in text or len(self._form.fields) >= MOST_FIELDS:
            raise _unreadable()
        self._form.fields.setdefault(self._field, text)

    def _end(self) -> None:
        self._is_complete = True

    def _check_once(self) -> None:
        if not self._is_checked:
            self._check(self._form.fields)
            self._is_checked = True


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _unreadable() from None


def _unescape(name: str) -> str:
    for escape, character in _ESCAPES:
        name = name.replace(escape, character)
    return name


def _unreadable() -> InvalidUpload:
    return InvalidUpload(
        f"The body must be a whole form as multipart/form-data, of at most {MOST_FIELDS} fields, "
        "in UTF-8 and without NUL characters."
    )


async def pieces_of(content: FileContent) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, read in threads."""
    spool = content.spooled()
    spool.flush()
    with spool.path.open("rb") as file:
        while data := await asyncio.to_thread(file.read, _CHUNK):
            yield data
