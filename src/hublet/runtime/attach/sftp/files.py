"""Open files and folders of one SFTP session; each handler returns a packet or raises OSError.

The process has no more rights than the job: whatever path somebody names, and wherever links
lead, the kernel decides.
"""

# Pathlib is much to load, and names here are bytes.
# ruff: noqa: PTH116, PTH118, PTH208

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from .packets import Fields, apply, attributes, line, mode_of, text

STATUS, HANDLE, DATA, NAME, ATTRIBUTES, EXTENDED_REPLY = 101, 102, 103, 104, 105, 201
# With an empty message in an empty language.
OK, END = bytes(12), b"\0\0\0\1" + bytes(8)
MOST_BYTES = 1 << 18
_MOST_READ = MOST_BYTES - 1024
_MOST_HANDLES = 256
_ENTRIES = 100
_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _EXCLUSIVE = 1, 2, 4, 8, 16, 32

Answer = tuple[int, bytes]


@dataclass(slots=True)
class Open:
    """An open file, or what is still to be told of a folder."""

    fd: int = -1
    path: bytes = b""
    names: list[bytes] | None = None


@dataclass(slots=True)
class Files:
    """The open files of one session."""

    _open: dict[bytes, Open] = field(default_factory=dict)
    _count: int = 0

    def open(self, fields: Fields) -> Answer:
        path, flags = fields.text(), fields.number()
        mode = mode_of(fields.attributes(), otherwise=0o666)
        how = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDWR)[flags & (_READ | _WRITE)]
        for flag, bit in (
            (_APPEND, os.O_APPEND),
            (_CREATE, os.O_CREAT),
            (_TRUNCATE, os.O_TRUNC),
            (_EXCLUSIVE, os.O_EXCL),
        ):
            how |= bit if flags & flag else 0
        return self._kept(lambda: Open(fd=os.open(path, how | os.O_CLOEXEC, mode), path=path))

    def open_folder(self, fields: Fields) -> Answer:
        path = fields.text()
        return self._kept(lambda: Open(path=path, names=[b".", b"..", *os.listdir(path)]))

    def _kept(self, opened: Callable[[], Open]) -> Answer:
        if len(self._open) >= _MOST_HANDLES:
            raise OSError(errno.EMFILE, "Too many open files")
        self._count += 1
        name = b"%d" % self._count
        self._open[name] = opened()
        return HANDLE, text(name)

    def _found(self, fields: Fields) -> Open:
        found = self._open.get(fields.text())
        if found is None:
            raise OSError(errno.EBADF, "There is no such handle")
        return found

    def close(self, fields: Fields) -> Answer:
        name = fields.text()
        found = self._found(Fields(text(name)))
        del self._open[name]
        if found.names is None:
            os.close(found.fd)
        return STATUS, OK

    def read(self, fields: Fields) -> Answer:
        found, offset = self._found(fields), fields.large_number()
        data = os.pread(found.fd, min(fields.number(), _MOST_READ), offset)
        return (DATA, text(data)) if data else (STATUS, END)

    def write(self, fields: Fields) -> Answer:
        found, offset = self._found(fields), fields.large_number()
        view = memoryview(fields.text())
        while view:
            written = os.pwrite(found.fd, view, offset)
            view, offset = view[written:], offset + written
        return STATUS, OK

    def read_folder(self, fields: Fields) -> Answer:
        found = self._found(fields)
        if found.names is None:
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not found.names:
            return STATUS, END
        names, found.names = found.names[:_ENTRIES], found.names[_ENTRIES:]
        entries = []
        for name in names:
            try:
                entry = os.lstat(os.path.join(found.path, name))
            except OSError:
                continue  # Gone since the folder was listed.
            entries.append(text(name) + text(line(name, entry)) + attributes(entry))
        return NAME, len(entries).to_bytes(4) + b"".join(entries)

    def fstat(self, fields: Fields) -> Answer:
        found = self._found(fields)
        entry = os.stat(found.path) if found.names is not None else os.fstat(found.fd)
        return ATTRIBUTES, attributes(entry)

    def fsetstat(self, fields: Fields) -> Answer:
        found = self._found(fields)
        apply(found.path if found.names is not None else found.fd, fields.attributes())
        return STATUS, OK

    def fsync(self, fields: Fields) -> Answer:
        os.fsync(self._found(fields).fd)
        return STATUS, OK
