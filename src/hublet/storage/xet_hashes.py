"""Hashes of Xet: of chunks, xorbs, files and ranges of chunks.

A hash is 32 bytes, seen as four little-endian 64-bit numbers; its text has 16 hexadecimal digits for
each of them, so that within each group of eight the bytes stand in reverse.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from blake3 import blake3

from hublet.storage.errors import InvalidHash

HASH_BYTES = 32
ZERO_HASH = bytes(HASH_BYTES)

_CHUNK_KEY = bytes.fromhex("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
_NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
_RANGE_KEY = bytes.fromhex("7f1857d6ce56ed66127ff913e7a5c3f3a4cd26d5b5db49e64124987f28fb94c3")

_NUMBERS = struct.Struct("<4Q")
_TEXT = re.compile("[0-9a-f]{64}")

# A group of the tree has at least three members and at most nine, unless it is the last.
_SMALLEST_GROUP = 3
_LARGEST_GROUP = 9
# A node ends its group when the last number of its hash is divisible by this.
_GROUP_END = 4
# Clients ask for chunks whose last number is divisible by this.
_QUERIED = 1024


class Node(NamedTuple):
    """Node of the tree, or a chunk as its leaf: the hash and the length of what is below it."""

    hash: bytes
    length: int


def to_text(digest: bytes) -> str:
    return "{:016x}{:016x}{:016x}{:016x}".format(*_NUMBERS.unpack(digest))


def from_text(text: str) -> bytes:
    if not _TEXT.fullmatch(text):
        raise InvalidHash(text)
    return _NUMBERS.pack(*(int(text[at : at + 16], 16) for at in range(0, 64, 16)))


def last_number(digest: bytes) -> int:
    """Return the last of the four numbers, which decides where groups end."""
    return int.from_bytes(digest[24:], "little")


def is_queried(chunk: bytes, at: int) -> bool:
    """Return whether clients ask for a chunk of a file: for the first, and for one in 1,024."""
    return at == 0 or last_number(chunk) % _QUERIED == 0


def chunk_hash(data: bytes | bytearray | memoryview) -> bytes:
    return blake3(data, key=_CHUNK_KEY).digest()


def range_hash(chunk_hashes: bytes | memoryview) -> bytes:
    """Return the hash that proves knowledge of the chunks of a segment: of their hashes, joined."""
    return blake3(chunk_hashes, key=_RANGE_KEY).digest()


def keyed_hash(chunk: bytes, key: bytes) -> bytes:
    """Return a chunk's hash as it stands in the response to a chunk query."""
    return blake3(chunk, key=key).digest()


def xorb_hash(chunks: Iterable[Node]) -> bytes:
    """Return the root of the tree over the chunks.

    Only some groups of it are in memory at a time: a file of a terabyte has 16 million chunks.
    """
    level = iter(chunks)
    first = next(level, None)
    if first is None:
        return ZERO_HASH
    while (second := next(level, None)) is not None:
        level = _parents(chain((first, second), level))
        first = next(level)
    return first.hash


def file_hash(chunks: Iterable[Node]) -> bytes:
    root = xorb_hash(chunks)
    return root if root == ZERO_HASH else blake3(root, key=ZERO_HASH).digest()


def _parents(level: Iterable[Node]) -> Iterator[Node]:
    group: list[Node] = []
    for node in level:
        group.append(node)
        if len(group) >= _SMALLEST_GROUP and _ends_group(group):
            yield _parent(group)
            group = []
    if group:
        yield _parent(group)


def _ends_group(group: list[Node]) -> bool:
    return len(group) == _LARGEST_GROUP or last_number(group[-1].hash) % _GROUP_END == 0


def _parent(children: Iterable[Node]) -> Node:
    text = "".join([f"{to_text(child.hash)} : {child.length}\n" for child in children])
    digest = blake3(text.encode(), key=_NODE_KEY).digest()
    return Node(digest, sum([child.length for child in children]))
