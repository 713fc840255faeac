"""Xorbs and shards as the public clients make them, for tests."""

import struct
from collections.abc import Sequence

import lz4.frame

from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import Node, chunk_hash, file_hash, from_text, range_hash, xorb_hash

_TAG = b"HFRepoMetaData\x00" + bytes.fromhex("556967456a7b815783a5bdd95ccdd14aa9")
END = b"\xff" * 32 + bytes(16)


def header(stored: int, scheme: int, length: int, *, version: int = 0) -> bytes:
    return (
        bytes([version])
        + stored.to_bytes(3, "little")
        + bytes([scheme])
        + length.to_bytes(3, "little")
    )


def stored_chunk(content: bytes, scheme: int = 0) -> bytes:
    data = content
    if scheme == 2:
        data = b"".join(content[group::4] for group in range(4))
    if scheme:
        data = lz4.frame.compress(data, store_size=False)
    return header(len(data), scheme, len(content)) + data


def nodes(contents: Sequence[bytes]) -> list[Node]:
    return [Node(chunk_hash(content), len(content)) for content in contents]


def make_xorb(contents: Sequence[bytes], scheme: int = 0) -> tuple[bytes, bytes]:
    """Return the hash of a xorb with these chunks, and the xorb."""
    data = b"".join(stored_chunk(content, scheme) for content in contents)
    return xorb_hash(nodes(contents)), data


def record(digest: bytes, *numbers: int) -> bytes:
    return digest + struct.pack("<4I", *numbers)


def shard_header(footer: int = 0, *, tag: bytes = _TAG, version: int = 2) -> bytes:
    return tag + struct.pack("<2Q", version, footer)


def shard_file(
    contents: Sequence[bytes], segments: Sequence[Segment], *, sha256: str | None = None
) -> bytes:
    """Return the records of a file whose segments cover the chunks in their order."""
    flags = 1 << 31 | (1 << 30 if sha256 else 0)
    hashes = nodes(contents)
    parts = [record(file_hash(hashes), flags, len(segments), 0, 0)]
    parts += [record(each.xorb, 0, each.length, each.start, each.end) for each in segments]
    at = 0
    for each in segments:
        count = each.end - each.start
        joined = b"".join(node.hash for node in hashes[at : at + count])
        parts.append(record(range_hash(joined), 0, 0, 0, 0))
        at += count
    if sha256:
        parts.append(record(from_text(sha256), 0, 0, 0, 0))
    return b"".join(parts)


def shard_xorb(contents: Sequence[bytes]) -> bytes:
    hashes = nodes(contents)
    raw = sum(node.length for node in hashes)
    parts = [record(xorb_hash(hashes), 0, len(hashes), raw, 0)]
    at = 0
    for node in hashes:
        parts.append(record(node.hash, at, node.length, 0, 0))
        at += node.length
    return b"".join(parts)


def make_shard(files: Sequence[bytes], xorbs: Sequence[bytes]) -> bytes:
    return shard_header() + b"".join(files) + END + b"".join(xorbs) + END
