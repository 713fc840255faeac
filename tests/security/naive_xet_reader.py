"""Xorbs and shards read by the words of the format's description, slowly and without any care.

It shares no code with the hub, and has no bounds: only for bodies that a test has made.
"""

from dataclasses import dataclass

import blake3
import lz4.frame

CHUNK_KEY = bytes.fromhex("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
RANGE_KEY = bytes.fromhex("7f1857d6ce56ed66127ff913e7a5c3f3a4cd26d5b5db49e64124987f28fb94c3")


class NotReadable(Exception):
    pass


def text(digest: bytes) -> str:
    """Return a hash as text: each group of eight bytes stands in reverse."""
    return b"".join(digest[at : at + 8][::-1] for at in range(0, 32, 8)).hex()


def root(contents: list[bytes]) -> bytes:
    """Return the root of the tree over chunks."""
    level = [(blake3.blake3(each, key=CHUNK_KEY).digest(), len(each)) for each in contents]
    while len(level) > 1:
        level = [_parent(group) for group in _groups(level)]
    return level[0][0] if level else bytes(32)


def _groups(level: list[tuple[bytes, int]]) -> list[list[tuple[bytes, int]]]:
    groups: list[list[tuple[bytes, int]]] = [[]]
    for digest, length in level:
        groups[-1].append((digest, length))
        index = len(groups[-1]) - 1
        divisible = int.from_bytes(digest[24:32], "little") % 4 == 0
        if index == 8 or (index >= 2 and divisible):
            groups.append([])
    return [group for group in groups if group]


def _parent(group: list[tuple[bytes, int]]) -> tuple[bytes, int]:
    lines = "".join(f"{text(digest)} : {length}\n" for digest, length in group)
    return blake3.blake3(lines.encode(), key=NODE_KEY).digest(), sum(each[1] for each in group)


def file_root(contents: list[bytes]) -> bytes:
    if not contents:
        return bytes(32)
    return blake3.blake3(root(contents), key=bytes(32)).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveXorb:
    contents: list[bytes]
    # Where each chunk ends in the body.
    ends: list[int]


def read_xorb(body: bytes) -> NaiveXorb:
    contents: list[bytes] = []
    ends: list[int] = []
    at = 0
    while at < len(body) and body[at : at + 7] != b"XETBLOB":
        header = body[at : at + 8]
        stored = int.from_bytes(header[1:4], "little")
        length = int.from_bytes(header[5:8], "little")
        data = body[at + 8 : at + 8 + stored]
        if len(header) < 8 or header[0] != 0 or len(data) < stored or not 1 <= length <= 131072:
            raise NotReadable
        at += 8 + stored
        contents.append(_content(data, header[4], length))
        ends.append(at)
    if not 1 <= len(contents) <= 8192:
        raise NotReadable
    return NaiveXorb(contents=contents, ends=ends)


def _content(data: bytes, scheme: int, length: int) -> bytes:
    if scheme not in {0, 1, 2}:
        raise NotReadable
    if scheme:
        data = _decompressed(data)
    if len(data) != length:
        raise NotReadable
    if scheme < 2:
        return data
    ungrouped = [0] * length
    places = [at for group in range(4) for at in range(group, length, 4)]
    for place, byte in zip(places, data, strict=True):
        ungrouped[place] = byte
    return bytes(ungrouped)


def _decompressed(data: bytes) -> bytes:
    try:
        content, read = lz4.frame.decompress(data, return_bytes_read=True)
    except RuntimeError:
        raise NotReadable from None
    if read != len(data):
        raise NotReadable
    return bytes(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveFile:
    hash: bytes
    # The xorb, the claimed length, the first chunk, and the chunk after the last.
    segments: list[tuple[bytes, int, int, int]]
    ranges: list[bytes]
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveShard:
    files: list[NaiveFile]
    # Each with its chunks' hashes and lengths.
    xorbs: list[tuple[bytes, list[tuple[bytes, int]]]]


class _Records:
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 48

    def __call__(self) -> tuple[bytes, list[int]]:
        record = self.body[self.at : self.at + 48]
        if len(record) < 48:
            raise NotReadable
        self.at += 48
        return record[:32], [
            int.from_bytes(record[at : at + 4], "little") for at in (32, 36, 40, 44)
        ]


def read_shard(body: bytes) -> NaiveShard:
    if len(body) < 48:
        raise NotReadable
    record = _Records(body)
    files, xorbs = [], []
    while (header := record())[0] != b"\xff" * 32:
        files.append(_file(record, *header))
    while (header := record())[0] != b"\xff" * 32:
        chunks = [record() for _ in range(header[1][1])]
        xorbs.append((header[0], [(digest, numbers[1]) for digest, numbers in chunks]))
    return NaiveShard(files=files, xorbs=xorbs)


def _file(record: _Records, digest: bytes, numbers: list[int]) -> NaiveFile:
    flags, count = numbers[:2]
    segments = [record() for _ in range(count)]
    ranges = [record()[0] for _ in range(count if flags >> 31 & 1 else 0)]
    sha256 = text(record()[0]) if flags >> 30 & 1 else None
    return NaiveFile(
        hash=digest,
        segments=[(xorb, given[1], given[2], given[3]) for xorb, given in segments],
        ranges=ranges,
        sha256=sha256,
    )


def read_file(file: NaiveFile, xorbs: dict[bytes, list[bytes]]) -> list[bytes]:
    """Return the chunks of a file, given the chunks of all xorbs; what is claimed must be so."""
    if len(file.ranges) != len(file.segments):
        raise NotReadable
    contents: list[bytes] = []
    for (xorb, length, start, end), claimed in zip(file.segments, file.ranges, strict=True):
        part = xorbs.get(xorb, [])[start:end]
        hashes = b"".join(blake3.blake3(each, key=CHUNK_KEY).digest() for each in part)
        is_there = part and len(part) == end - start
        if not is_there or sum(map(len, part)) != length:
            raise NotReadable
        if blake3.blake3(hashes, key=RANGE_KEY).digest() != claimed:
            raise NotReadable
        contents += part
    if file_root(contents) != file.hash:
        raise NotReadable
    return contents
