"""Records of the storage: blobs, xorbs, and where the bytes of a blob lie."""

from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content that is known by the SHA-256 of its bytes."""

    sha256: str
    size: int
    # The id of the same bytes as a blob of git, where it is known.
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Xorb:
    """A verified xorb in the store; its hash is in the text form."""

    hash: str
    chunks: int
    # Bytes of content, and bytes of the chunks as they are stored.
    size: int
    stored_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSegment:
    """Run of chunks of a xorb that is a part of a blob; ends are not included."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Where the bytes of a blob lie: in one object, in pieces of xorbs, or in both."""

    sha256: str
    size: int
    # Its file hash of Xet, in the text form; None until it is cut into chunks.
    xet_hash: str | None = None
    is_whole: bool = True
    segments: tuple[BlobSegment, ...] = ()
