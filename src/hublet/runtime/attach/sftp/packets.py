"""Encoding of SFTP packets: numbers, texts and file attributes."""

import os
import stat
import struct
import time

_SIZE, _OWNER, _MODE, _TIMES = 1, 2, 4, 8
_HALF_A_YEAR = 15_552_000


class Fields:
    """What is left of a packet; reading beyond its end raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        return int.from_bytes(self._taken(4))

    def large_number(self) -> int:
        return int.from_bytes(self._taken(8))

    def text(self) -> bytes:
        return self._taken(self.number())

    def attributes(self) -> dict[int, tuple[int, ...]]:
        """Return what is to be set, by the bit that stands for it."""
        flags = self.number()
        found: dict[int, tuple[int, ...]] = {}
        if flags & _SIZE:
            found[_SIZE] = (self.large_number(),)
        for flag, count in ((_OWNER, 2), (_MODE, 1), (_TIMES, 2)):
            if flags & flag:
                found[flag] = tuple(self.number() for _ in range(count))
        return found

    def _taken(self, count: int) -> bytes:
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
    """Return an entry as `ls -l` prints it: some clients show nothing else."""
    recent = abs(time.time() - found.st_mtime) < _HALF_A_YEAR
    when = time.strftime("%b %e %H:%M" if recent else "%b %e  %Y", time.gmtime(found.st_mtime))
    words = f"{stat.filemode(found.st_mode)} {found.st_nlink:>4} {found.st_uid:<8} "
    return f"{words}{found.st_gid:<8} {found.st_size:>10} {when} ".encode() + name


def apply(target: int | bytes, wanted: dict[int, tuple[int, ...]]) -> None:
    """Set attributes of an open file, or of what a path leads to."""
    if _SIZE in wanted:
        os.truncate(target, wanted[_SIZE][0])
    if _MODE in wanted:
        os.chmod(target, wanted[_MODE][0] & 0o7777)  # noqa: PTH101 - pathlib is much to load.
    if _TIMES in wanted:
        os.utime(target, (wanted[_TIMES][0], wanted[_TIMES][1]))
    if _OWNER in wanted:
        os.chown(target, *wanted[_OWNER])


def mode_of(wanted: dict[int, tuple[int, ...]], *, otherwise: int) -> int:
    return wanted[_MODE][0] & 0o7777 if _MODE in wanted else otherwise
