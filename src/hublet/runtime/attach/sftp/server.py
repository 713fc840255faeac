"""SFTP server loop: one client, one request after the other, until it hangs up."""

import errno
import os
import struct
from collections.abc import Callable

from . import paths
from .files import MOST_BYTES, STATUS, Answer, Files
from .packets import Fields, text

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
_EXTENSIONS: dict[bytes, tuple[bytes, Callable[[Fields], Answer]]] = {
    b"posix-rename@openssh.com": (b"1", paths.rename_over),
    b"hardlink@openssh.com": (b"1", paths.hard_link),
    b"limits@openssh.com": (b"1", paths.limits),
    b"expand-path@openssh.com": (b"1", paths.expand_path),
}
_FSYNC = b"fsync@openssh.com"

Handler = Callable[[Fields], Answer]


def serve(incoming: int, outgoing: int, *, target_first: bool) -> None:
    """Serve until the client hangs up, or sends what is no packet.

    The draft has the name of a new link before what it leads to; OpenSSH never did.
    """
    handlers = _handlers(Files(), target_first=target_first)
    buffer = bytearray()
    while data := os.read(incoming, _CHUNK):
        buffer += data
        answers = []
        while (size := _size(buffer)) is not None and len(buffer) >= _HEAD + size:
            answers.append(_answer(bytes(buffer[_HEAD : _HEAD + size]), handlers))
            del buffer[: _HEAD + size]
        if (size or 0) > MOST_BYTES:
            return
        _write(outgoing, b"".join(answers))


def _size(buffer: bytearray) -> int | None:
    return int.from_bytes(buffer[:_HEAD]) if len(buffer) >= _HEAD else None


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _handlers(files: Files, *, target_first: bool) -> dict[int, Handler]:
    return {
        3: files.open,
        4: files.close,
        5: files.read,
        6: files.write,
        7: paths.lstat,
        8: files.fstat,
        9: paths.setstat,
        10: files.fsetstat,
        11: files.open_folder,
        12: files.read_folder,
        13: paths.remove,
        14: paths.make_folder,
        15: paths.remove_folder,
        16: paths.real_path,
        17: paths.stat,
        18: paths.rename,
        19: paths.read_link,
        20: paths.make_link if target_first else paths.make_link_by_name,
        _EXTENDED: lambda fields: _extended(files, fields),
    }


def _extended(files: Files, fields: Fields) -> Answer:
    name = fields.text()
    if name == _FSYNC:
        return files.fsync(fields)
    if name not in _EXTENSIONS:
        return STATUS, _status(_UNSUPPORTED, "Operation unsupported")
    return _EXTENSIONS[name][1](fields)


def _answer(packet: bytes, handlers: dict[int, Handler]) -> bytes:
    if packet[:1] == bytes([_INIT]):
        pairs = [text(name) + text(version) for name, (version, _) in _EXTENSIONS.items()]
        hello = b"\0\0\0\3" + b"".join([*pairs, text(_FSYNC) + text(b"1")])
        return text(bytes([_VERSION]) + hello)
    kind, body = _handled(packet, handlers)
    return text(bytes([kind]) + packet[1:5] + body)


def _handled(packet: bytes, handlers: dict[int, Handler]) -> Answer:
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
