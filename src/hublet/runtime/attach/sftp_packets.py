"""Encoding of SFTP packets: numbers, texts and file attributes."""

import os
import stat
import struct
import time

_SIZE, _OWNER, _MODE, _TIMES = 1, 2, 4, 8
_HALF_A_YEAR = 15_552_000


class Fields:
    """Reader of the fields of a packet; reading beyond its end raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        return int.from_bytes(self._take_bytes(4))

    def large_number(self) -> int:
        return int.from_bytes(self._take_bytes(8))

    def text(self) -> bytes:
        return self._take_bytes(self.number())

    def attributes(self) -> dict[int, tuple[int, ...]]:
        """Return the attributes to set, by their flags."""
        flags = self.number()
        found: dict[int, tuple[int, ...]] = {}
        if flags & _SIZE:
            found[_SIZE] = (self.large_number(),)
        for flag, count in ((_OWNER, 2), (_MODE, 1), (_TIMES, 2)):
            if flags & flag:
                found[flag] = tuple(self.number() for _ in range(count))
        return found

    def _take_bytes(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise ValueError("The packet is too short.")
        return self._data[start : self._at]


def text(value: bytes) -> bytes:
    return len(value).to_bytes(4) + value


def attributes(found: os.stat_result) -> bytes:
    return struct.pack(
        ">IQIIIII",
        _SIZE | _OWNER | _MODE | _TIMES,
        found.st_size,
        found.st_uid,
        found.st_gid,
        found.st_mode,
        int(found.st_atime) & 0xFFFFFFFF,
        int(found.st_mtime) & 0xFFFFFFFF,
    )


def line(name: bytes, found: os.stat_result) -> bytes:
    """Return an entry in the format of `ls -l`: some clients show nothing else."""
    recent = abs(time.time() - found.st_mtime) < _HALF_A_YEAR
    when = time.strftime("%b %e %H:%M" if recent else "%b %e  %Y", time.gmtime(found.st_mtime))
    words = f"{stat.filemode(found.st_mode)} {found.st_nlink:>4} {found.st_uid:<8} "
    return f"{words}{found.st_gid:<8} {found.st_size:>10} {when} ".encode() + name


def apply(target: int | bytes, changes: dict[int, tuple[int, ...]]) -> None:
    """Set attributes of an open file, or of the file at a path."""
    if _SIZE in changes:
        os.truncate(target, changes[_SIZE][0])
    if _MODE in changes:
        os.chmod(target, changes[_MODE][0] & 0o7777)  # noqa: PTH101 - pathlib is much to load.
    if _TIMES in changes:
        os.utime(target, (changes[_TIMES][0], changes[_TIMES][1]))
    if _OWNER in changes:
        os.chown(target, *changes[_OWNER])


def mode_of(changes: dict[int, tuple[int, ...]], *, otherwise: int) -> int:
    return changes[_MODE][0] & 0o7777 if _MODE in changes else otherwise
