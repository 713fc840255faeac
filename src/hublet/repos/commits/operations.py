"""Operations of a commit: its header, added and deleted files, and their content.

Small content stays in memory, larger content goes to the disk while it arrives.
"""

import binascii

from hublet.core.dataclasses import dataclass
from hublet.storage.object_store import ObjectStore
from hublet.storage.spools import Spool

MOST_IN_MEMORY = 1 << 20


class InvalidBase64(Exception):
    pass


class FileContent:
    """The bytes of one file: write them, then read them or keep them."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._memory = bytearray()
        self.spool: Spool | None = None
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.spool is not None:
            self.spool.write(data)
        elif self.size <= MOST_IN_MEMORY:
            self._memory += data
        else:
            self.spool = self._store.new_spool()
            self.spool.write(self._memory)
            self.spool.write(data)
            self._memory = bytearray()

    def read_all(self) -> bytes:
        """Return everything; only for what is known to be small."""
        return bytes(self._memory) if self.spool is None else self.spool.read_all()

    def sample(self, size: int) -> bytes:
        """Return the first bytes."""
        if self.spool is None:
            return bytes(self._memory[:size])
        self.spool.flush()
        with self.spool.path.open("rb") as file:
            return file.read(size)

    def spooled(self) -> Spool:
        """Return the bytes in a spool; those in memory are written to one."""
        if self.spool is None:
            self.spool = self._store.new_spool()
            self.spool.write(self._memory)
        return self.spool

    def close(self) -> None:
        if self.spool is not None:
            self.spool.close()


class Base64Decoder:
    """Streaming base64 decoder: takes text in pieces of any size."""

    def __init__(self, content: FileContent) -> None:
        self._content = content
        self._rest = b""
        self._is_padded = False

    def feed(self, text: bytes) -> None:
        if self._rest:
            text = self._rest + text
        whole = len(text) - len(text) % 4
        self._rest = text[whole:]
        if not whole:
            return
        if self._is_padded:
            raise InvalidBase64
        self._is_padded = text[whole - 1 : whole] == b"="
        try:
            self._content.write(binascii.a2b_base64(text[:whole], strict_mode=True))
        except binascii.Error:
            raise InvalidBase64 from None

    def end(self) -> FileContent:
        if self._rest:
            raise InvalidBase64
        return self._content


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHeader:
    """The first line of the body: the message, and the parent that the commit is meant for."""

    summary: str
    description: str = ""
    parent: str | None = None

    @property
    def message(self) -> str:
        return f"{self.summary}\n\n{self.description}" if self.description else self.summary


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    path: str
    content: FileContent
    # Whether git holds a pointer to it, whatever its size.
    is_lfs: bool = False
    # Where the file was before, when it gets another name.
    moved_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLfsFile:
    """A file whose content was uploaded before, through LFS."""

    path: str
    sha256: str
    # None: not checked; a copy on the hub has no size.
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFolder:
    path: str


Operation = AddFile | AddLfsFile | DeleteFile | DeleteFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    oid: str
    url: str
    pull_request_url: str | None = None
    # False: the branch had all of it already.
    is_new: bool = True
