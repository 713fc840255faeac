"""SFTP server, version 3: one client, one request after the other, until it disconnects.

It runs as a process of the job itself, like all of this part.
"""

import errno
import os
import struct
from collections.abc import Callable

from . import sftp_files
from .sftp_files import MOST_BYTES, STATUS, OpenFiles, SftpReply
from .sftp_packets import Fields, text

_INIT, _VERSION, _EXTENDED = 1, 2, 200
_CHUNK = 1 << 18
# The length in front of each packet.
_HEAD = 4
_NO_SUCH_FILE, _DENIED, _FAILURE, _BAD_MESSAGE, _UNSUPPORTED = 2, 3, 4, 5, 8
_CODES = {
    errno.ENOENT: _NO_SUCH_FILE,
    errno.ENOTDIR: _NO_SUCH_FILE,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
}
_EXTENSIONS: dict[bytes, tuple[bytes, Callable[[Fields], SftpReply]]] = {
    b"posix-rename@openssh.com": (b"1", sftp_files.rename_over),
    b"hardlink@openssh.com": (b"1", sftp_files.hard_link),
    b"limits@openssh.com": (b"1", sftp_files.limits),
    b"expand-path@openssh.com": (b"1", sftp_files.expand_path),
}
_FSYNC = b"fsync@openssh.com"

Handler = Callable[[Fields], SftpReply]


def serve(incoming: int, outgoing: int, *, target_first: bool) -> None:
    """Serve until the client disconnects, or sends what is no packet.

    In a request for a symbolic link the draft has the new path before its target; OpenSSH sends
    the target first.
    """
    handlers = _handlers(OpenFiles(), target_first=target_first)
    buffer = bytearray()
    while data := os.read(incoming, _CHUNK):
        buffer += data
        replies = []
        while (size := _size(buffer)) is not None and len(buffer) >= _HEAD + size:
            replies.append(_reply(bytes(buffer[_HEAD : _HEAD + size]), handlers))
            del buffer[: _HEAD + size]
        if (size or 0) > MOST_BYTES:
            return
        _write(outgoing, b"".join(replies))


def _size(buffer: bytearray) -> int | None:
    return int.from_bytes(buffer[:_HEAD]) if len(buffer) >= _HEAD else None


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _handlers(files: OpenFiles, *, target_first: bool) -> dict[int, Handler]:
    return {
        3: files.open,
        4: files.close,
        5: files.read,
        6: files.write,
        7: sftp_files.lstat,
        8: files.fstat,
        9: sftp_files.setstat,
        10: files.fsetstat,
        11: files.open_folder,
        12: files.read_folder,
        13: sftp_files.remove,
        14: sftp_files.make_folder,
        15: sftp_files.remove_folder,
        16: sftp_files.real_path,
        17: sftp_files.stat,
        18: sftp_files.rename,
        19: sftp_files.read_link,
        20: sftp_files.make_link if target_first else sftp_files.make_link_by_name,
        _EXTENDED: lambda fields: _extended(files, fields),
    }


def _extended(files: OpenFiles, fields: Fields) -> SftpReply:
    name = fields.text()
    if name == _FSYNC:
        return files.fsync(fields)
    if name not in _EXTENSIONS:
        return STATUS, _status(_UNSUPPORTED, "Operation unsupported")
    return _EXTENSIONS[name][1](fields)


def _reply(packet: bytes, handlers: dict[int, Handler]) -> bytes:
    if packet[:1] == bytes([_INIT]):
        pairs = [text(name) + text(version) for name, (version, _) in _EXTENSIONS.items()]
        hello = b"\0\0\0\3" + b"".join([*pairs, text(_FSYNC) + text(b"1")])
        return text(bytes([_VERSION]) + hello)
    kind, body = _handle(packet, handlers)
    return text(bytes([kind]) + packet[1:5] + body)


def _handle(packet: bytes, handlers: dict[int, Handler]) -> SftpReply:
    handler = handlers.get(packet[0]) if packet else None
    if handler is None:
        return STATUS, _status(_UNSUPPORTED, "Operation unsupported")
    try:
        return handler(Fields(packet[5:]))
    except OSError as error:
        code = _CODES.get(error.errno or 0, _FAILURE)
        return STATUS, _status(code, error.strerror or "Failure")
    except (ValueError, OverflowError, struct.error):
        return STATUS, _status(_BAD_MESSAGE, "Bad message")


def _status(code: int, words: str) -> bytes:
    return code.to_bytes(4) + text(words.encode()) + text(b"en")
