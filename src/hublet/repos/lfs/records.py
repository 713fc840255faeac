"""Records of Git LFS: requested objects, the actions in response, and the sizes of parts."""

from collections.abc import Mapping
from dataclasses import field

from hublet.core.dataclasses import dataclass
from hublet.repos.records import LinkedBlob

MIB = 1 << 20

# Larger files are uploaded in parts, so that a broken connection costs one part only.
PART_SIZE = 64 * MIB
_MOST_PARTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRequest:
    """An object that a client wants to upload or download."""

    oid: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRefusal:
    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferAction:
    """URL to transfer an object to or from, and what a client needs beside it."""

    href: str
    header: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectResponse:
    """Response to one object request; without an action or a refusal the hub has it already."""

    request: ObjectRequest
    upload: TransferAction | None = None
    download: TransferAction | None = None
    verify: TransferAction | None = None
    refusal: ObjectRefusal | None = None


def part_size_of(size: int) -> int:
    """Return the size of an object's parts: larger parts for objects with too many of them."""
    least = -(-size // _MOST_PARTS)
    return max(PART_SIZE, -(-least // MIB) * MIB)


def part_sizes(size: int) -> list[int]:
    each = part_size_of(size)
    whole, rest = divmod(size, each)
    return [each] * whole + ([rest] if rest else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedLfsFile:
    blob: LinkedBlob
    # A path and a ref that have its pointer now; None when only older commits have it.
    path: str | None = None
    ref: str | None = None
