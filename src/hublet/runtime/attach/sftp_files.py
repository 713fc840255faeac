"""Handlers of SFTP requests, on open files and on paths; each returns a reply or raises OSError.

The process has no more rights than the job, so the kernel decides which paths and links are open
to the client.
"""

# Pathlib is slow to load, and names here are bytes.
# ruff: noqa: PTH102, PTH104, PTH106, PTH108, PTH115, PTH116, PTH118, PTH208, PTH211

import errno
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from .sftp_packets import Fields, apply, attributes, line, mode_of, text

STATUS, HANDLE, DATA, NAME, ATTRIBUTES, EXTENDED_REPLY = 101, 102, 103, 104, 105, 201
# Status codes with an empty message in an empty language.
OK, END = bytes(12), b"\0\0\0\1" + bytes(8)
MOST_BYTES = 1 << 18
_MOST_READ = MOST_BYTES - 1024
_MOST_HANDLES = 256
_ENTRIES = 100
_NO_ATTRIBUTES = bytes(4)
_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _EXCLUSIVE = 1, 2, 4, 8, 16, 32

SftpReply = tuple[int, bytes]


@dataclass(slots=True)
class OpenFile:
    """An open file, or the names of a folder that are not sent yet."""

    fd: int = -1
    path: bytes = b""
    names: list[bytes] | None = None


@dataclass(slots=True)
class OpenFiles:
    """The open files of one session."""

    _open: dict[bytes, OpenFile] = field(default_factory=dict)
    _count: int = 0

    def open(self, fields: Fields) -> SftpReply:
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
        return self._add(lambda: OpenFile(fd=os.open(path, how | os.O_CLOEXEC, mode), path=path))

    def open_folder(self, fields: Fields) -> SftpReply:
        path = fields.text()
        return self._add(lambda: OpenFile(path=path, names=[b".", b"..", *os.listdir(path)]))

    def _add(self, open_file: Callable[[], OpenFile]) -> SftpReply:
        if len(self._open) >= _MOST_HANDLES:
            raise OSError(errno.EMFILE, "Too many open files")
        self._count += 1
        name = b"%d" % self._count
        self._open[name] = open_file()
        return HANDLE, text(name)

    def _get(self, fields: Fields) -> OpenFile:
        opened = self._open.get(fields.text())
        if opened is None:
            raise OSError(errno.EBADF, "There is no such handle")
        return opened

    def close(self, fields: Fields) -> SftpReply:
        name = fields.text()
        opened = self._get(Fields(text(name)))
        del self._open[name]
        if opened.names is None:
            os.close(opened.fd)
        return STATUS, OK

    def read(self, fields: Fields) -> SftpReply:
        opened, offset = self._get(fields), fields.large_number()
        data = os.pread(opened.fd, min(fields.number(), _MOST_READ), offset)
        return (DATA, text(data)) if data else (STATUS, END)

    def write(self, fields: Fields) -> SftpReply:
        opened, offset = self._get(fields), fields.large_number()
        view = memoryview(fields.text())
        while view:
            written = os.pwrite(opened.fd, view, offset)
            view, offset = view[written:], offset + written
        return STATUS, OK

    def read_folder(self, fields: Fields) -> SftpReply:
        opened = self._get(fields)
        if opened.names is None:
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not opened.names:
            return STATUS, END
        names, opened.names = opened.names[:_ENTRIES], opened.names[_ENTRIES:]
        entries = []
        for name in names:
            try:
                entry = os.lstat(os.path.join(opened.path, name))
            except OSError:
                continue  # Gone since the folder was listed.
            entries.append(text(name) + text(line(name, entry)) + attributes(entry))
        return NAME, len(entries).to_bytes(4) + b"".join(entries)

    def fstat(self, fields: Fields) -> SftpReply:
        opened = self._get(fields)
        entry = os.stat(opened.path) if opened.names is not None else os.fstat(opened.fd)
        return ATTRIBUTES, attributes(entry)

    def fsetstat(self, fields: Fields) -> SftpReply:
        opened = self._get(fields)
        apply(opened.path if opened.names is not None else opened.fd, fields.attributes())
        return STATUS, OK

    def fsync(self, fields: Fields) -> SftpReply:
        os.fsync(self._get(fields).fd)
        return STATUS, OK


def stat(fields: Fields) -> SftpReply:
    return ATTRIBUTES, attributes(os.stat(fields.text()))


def lstat(fields: Fields) -> SftpReply:
    return ATTRIBUTES, attributes(os.lstat(fields.text()))


def setstat(fields: Fields) -> SftpReply:
    apply(fields.text(), fields.attributes())
    return STATUS, OK


def remove(fields: Fields) -> SftpReply:
    os.unlink(fields.text())
    return STATUS, OK


def make_folder(fields: Fields) -> SftpReply:
    path = fields.text()
    os.mkdir(path, mode_of(fields.attributes(), otherwise=0o777))
    return STATUS, OK


def remove_folder(fields: Fields) -> SftpReply:
    os.rmdir(fields.text())
    return STATUS, OK


def real_path(fields: Fields) -> SftpReply:
    return _name_reply(os.path.realpath(fields.text() or b"."))


def expand_path(fields: Fields) -> SftpReply:
    path = fields.text()
    # The process started in the home folder, and never leaves it.
    is_home = path == b"~" or path.startswith(b"~/")
    return _name_reply(os.path.realpath(path[2:] or b"." if is_home else path))


def read_link(fields: Fields) -> SftpReply:
    return _name_reply(os.readlink(fields.text()))


def make_link(fields: Fields) -> SftpReply:
    os.symlink(fields.text(), fields.text())
    return STATUS, OK


def make_link_by_name(fields: Fields) -> SftpReply:
    path, target = fields.text(), fields.text()
    os.symlink(target, path)
    return STATUS, OK


def hard_link(fields: Fields) -> SftpReply:
    os.link(fields.text(), fields.text())
    return STATUS, OK


def rename(fields: Fields) -> SftpReply:
    old, new = fields.text(), fields.text()
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new)
    return STATUS, OK


def rename_over(fields: Fields) -> SftpReply:
    os.rename(fields.text(), fields.text())
    return STATUS, OK


def limits(_: Fields) -> SftpReply:
    return EXTENDED_REPLY, struct.pack(">QQQQ", MOST_BYTES, MOST_BYTES - 1024, MOST_BYTES - 1024, 0)


def _name_reply(path: bytes) -> SftpReply:
    return NAME, b"\0\0\0\1" + text(path) * 2 + _NO_ATTRIBUTES
