"""Records of the storage: blobs, xorbs, and where the bytes of a blob lie."""

import hashlib

from hublet.core.dataclasses import dataclass

_HASH_DIGITS = 64
_ID_DIGITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content that is known by the SHA-256 of its bytes."""

    sha256: str
    size: int
    # The id of the same bytes as a blob of git, where it is known.
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Xorb:
    """A verified xorb in the store.

    The same chunks may lie there in several forms, compressed in other ways: the name of the object
    begins with the hash, in the text form.
    """

    name: str
    chunks: int
    # Bytes of content, and bytes of the chunks as they are stored.
    size: int
    stored_size: int

    @property
    def hash(self) -> str:
        return hash_of(self.name)


def hash_of(name: str) -> str:
    """Return the hash of a xorb, given the name of its object."""
    return name[:_HASH_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSegment:
    """Run of chunks of a xorb that is a part of a blob; ends are not included."""

    # The name of its object.
    xorb: str
    start_chunk: int
    end_chunk: int
    # Where the chunks lie in the stored xorb.
    start_byte: int
    end_byte: int
    # Bytes of content.
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBlob:
    """A blob that segments of verified xorbs make up, and its file hash of Xet."""

    blob: Blob
    xet_hash: str
    segments: tuple[BlobSegment, ...]

    @property
    def layout(self) -> str:
        """Return the id of its layout: equal segments of the same content have the same."""
        runs = (f"{each.xorb} {each.start_chunk} {each.end_chunk}" for each in self.segments)
        text = "\n".join((self.blob.sha256, *runs))
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Where the bytes of a blob lie, as a repository sees it: in one object, in pieces of xorbs, or both.

    A repository that has not cut it itself sees no file hash, wherever the bytes lie.
    """

    sha256: str
    size: int
    # Its file hash of Xet, in the text form; None until it is cut into chunks.
    xet_hash: str | None = None
    is_whole: bool = True
    segments: tuple[BlobSegment, ...] = ()
