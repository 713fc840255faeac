"""SFTP operations on paths, beside open files."""

# Pathlib is much to load, and names here are bytes.
# ruff: noqa: PTH102, PTH104, PTH106, PTH108, PTH115, PTH116, PTH211

import errno
import os
import struct

from .files import ATTRIBUTES, EXTENDED_REPLY, MOST_BYTES, NAME, OK, STATUS, Answer
from .packets import Fields, apply, attributes, mode_of, text

_NO_ATTRIBUTES = bytes(4)


def stat(fields: Fields) -> Answer:
    return ATTRIBUTES, attributes(os.stat(fields.text()))


def lstat(fields: Fields) -> Answer:
    return ATTRIBUTES, attributes(os.lstat(fields.text()))


def setstat(fields: Fields) -> Answer:
    apply(fields.text(), fields.attributes())
    return STATUS, OK


def remove(fields: Fields) -> Answer:
    os.unlink(fields.text())
    return STATUS, OK


def make_folder(fields: Fields) -> Answer:
    path = fields.text()
    os.mkdir(path, mode_of(fields.attributes(), otherwise=0o777))
    return STATUS, OK


def remove_folder(fields: Fields) -> Answer:
    os.rmdir(fields.text())
    return STATUS, OK


def real_path(fields: Fields) -> Answer:
    return _name(os.path.realpath(fields.text() or b"."))


def expand_path(fields: Fields) -> Answer:
    path = fields.text()
    # The process began at home, and stays there.
    is_home = path == b"~" or path.startswith(b"~/")
    return _name(os.path.realpath(path[2:] or b"." if is_home else path))


def read_link(fields: Fields) -> Answer:
    return _name(os.readlink(fields.text()))


def make_link(fields: Fields) -> Answer:
    os.symlink(fields.text(), fields.text())
    return STATUS, OK


def make_link_by_name(fields: Fields) -> Answer:
    path, target = fields.text(), fields.text()
    os.symlink(target, path)
    return STATUS, OK


def hard_link(fields: Fields) -> Answer:
    os.link(fields.text(), fields.text())
    return STATUS, OK


def rename(fields: Fields) -> Answer:
    old, new = fields.text(), fields.text()
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new)
    return STATUS, OK


def rename_over(fields: Fields) -> Answer:
    os.rename(fields.text(), fields.text())
    return STATUS, OK


def limits(_: Fields) -> Answer:
    return EXTENDED_REPLY, struct.pack(">QQQQ", MOST_BYTES, MOST_BYTES - 1024, MOST_BYTES - 1024, 0)


def _name(path: bytes) -> Answer:
    return NAME, b"\0\0\0\1" + text(path) * 2 + _NO_ATTRIBUTES
