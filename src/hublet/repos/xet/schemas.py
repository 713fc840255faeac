"""Schemas of the CAS, as the public clients speak to it."""

from typing import Annotated, Literal

from pydantic import Field

from hublet.core.schema import Schema

XetHash = Annotated[
    str,
    Field(pattern=r"^[0-9a-f]{64}$", description="A hash of Xet in its text form."),
]


class XetToken(Schema):
    """Access to the CAS: where it is, what to send there as a bearer token, and until when.

    The headers say the same.
    """

    casUrl: str
    exp: Annotated[int, Field(description="Seconds since 1970.")]
    accessToken: str


class ReceivedXorb(Schema):
    was_inserted: Annotated[bool, Field(description="Whether it is new to the repository.")]


class RegisteredShard(Schema):
    result: Annotated[Literal[0, 1], Field(description="1: files in it are new; 0: none is.")]


class ChunkRange(Schema):
    """Chunks of a xorb; the last one is not included."""

    start: int
    end: int


class BytesRange(Schema):
    """Bytes of a stored xorb; the last one is included."""

    start: int
    end: int


class ReconstructionTerm(Schema):
    hash: XetHash
    unpacked_length: int
    range: ChunkRange


class FetchInfo(Schema):
    range: ChunkRange
    url: str
    url_range: BytesRange


class FetchedRange(Schema):
    chunks: ChunkRange
    bytes: BytesRange


class XorbFetch(Schema):
    url: str
    ranges: list[FetchedRange]


class FileReconstruction(Schema):
    """What makes up a file: chunks of xorbs, and where to fetch them."""

    offset_into_first_range: int
    terms: list[ReconstructionTerm]
    fetch_info: dict[XetHash, list[FetchInfo]]


class FileReconstructions(Schema):
    """What makes up several files; those that the repository does not have are left out."""

    files: dict[XetHash, list[ReconstructionTerm]]
    fetch_info: dict[XetHash, list[FetchInfo]]


class FileReconstructionV2(Schema):
    """The same; several ranges may be fetched at once."""

    offset_into_first_range: int
    terms: list[ReconstructionTerm]
    xorbs: dict[XetHash, list[XorbFetch]]
