"""Files as repositories hold them: noise, weights and text, never twice the same; and changed copies.

Nothing in them repeats: what a client has sent once, it does not send again.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# A part is so long at the most, so that a large file is mixed all over.
_PART = 100_000_000
_PIECE = 1_000_000
_FLOAT_BYTES = 4
# The upper bytes of small float32 numbers, of which there are few: sign, and most of the exponent.
_UPPER_BYTES = bytes([0x3C, 0x3D, 0x3D, 0x3D, 0xBC, 0xBD, 0xBD, 0xBD] * 32)
_SYLLABLES = [a + b for a in (b"ba", b"den", b"gi", b"kor") for b in (b"la", b"mes", b"no", b"ti")]
_WORDS = [first + second + b" " for first in _SYLLABLES for second in _SYLLABLES]


def _noise(size: int) -> bytes:
    return os.urandom(size)


def _weights(size: int) -> bytes:
    """Return numbers around zero, as checkpoints hold them."""
    data = bytearray(os.urandom(size))
    upper = slice(_FLOAT_BYTES - 1, None, _FLOAT_BYTES)
    data[upper] = data[upper].translate(_UPPER_BYTES)
    return bytes(data)


def _text(size: int) -> bytes:
    shortest = min(map(len, _WORDS))
    return b"".join(map(_WORDS.__getitem__, os.urandom(size // shortest + 1)))[:size]


# Which share of a file is what.
_MIXTURE: tuple[tuple[float, Callable[[int], bytes]], ...] = (
    (0.5, _noise),
    (0.25, _weights),
    (0.25, _text),
)


def mixed_pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, _PART):
        part = min(_PART, size - start)
        for share, make in _MIXTURE:
            yield from _pieces(int(part * share), make)
        yield _noise(part - sum(int(part * share) for share, _ in _MIXTURE))


def _pieces(size: int, make: Callable[[int], bytes]) -> Iterator[bytes]:
    for start in range(0, size, _PIECE):
        yield make(min(_PIECE, size - start))


def write_mixed(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        for piece in mixed_pieces(size):
            file.write(piece)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Bytes taken out of a file at some place, and others put there."""

    # As a share of the file.
    at: float
    removed: int = 0
    added: int = 0


# In a file of 100 MB: at 10 MB overwritten, at 40 MB inserted, at 90 MB removed, and appended.
CHANGES = (
    Change(at=0.1, removed=1_000, added=1_000),
    Change(at=0.4, added=777),
    Change(at=0.9, removed=5_000),
    Change(at=1.0, added=100_000),
)


def write_changed(original: Path, path: Path) -> Path:
    """Write a copy with a few changes."""
    size = original.stat().st_size
    with original.open("rb") as source, path.open("wb") as file:
        for change in CHANGES:
            _copy(source.read, file.write, int(size * change.at) - source.tell())
            source.seek(change.removed, os.SEEK_CUR)
            file.write(_noise(change.added))
    return path


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], object], size: int) -> None:
    while size > 0 and (piece := read(min(size, _PIECE))):
        write(piece)
        size -= len(piece)


def write_small_files(folder: Path, count: int, *, suffix: str) -> Path:
    """Write many files of about a kilobyte, a hundred to a folder: text, or noise."""
    make = _text if suffix == ".txt" else _noise
    for number in range(count):
        path = folder / f"{number // 100:03}" / f"{number:05}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make(1_000 + number % 100))
    return folder
