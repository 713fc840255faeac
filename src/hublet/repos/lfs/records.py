"""Records of Git LFS: requested objects, the actions in response, and the sizes of parts."""

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import LinkedBlob

MIB = 1 << 20

# Larger files come in parts, so that a broken line costs one part and not the whole.
PART_SIZE = 64 * MIB
_MOST_PARTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRequest:
    """An object that a client wants to send or to get."""

    oid: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRefusal:
    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferAction:
    """Where to go for an object; with several parts, one address for each of them."""

    href: str
    part_size: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectResponse:
    """What becomes of one wanted object; without an action or a refusal it is here already."""

    wanted: ObjectRequest
    upload: TransferAction | None = None
    download: TransferAction | None = None
    verify: TransferAction | None = None
    refusal: ObjectRefusal | None = None


def part_size_of(size: int) -> int:
    """Return how large the parts of an object are: more of them only up to a limit."""
    least = -(-size // _MOST_PARTS)
    return max(PART_SIZE, -(-least // MIB) * MIB)


def part_sizes(size: int) -> list[int]:
    each = part_size_of(size)
    whole, rest = divmod(size, each)
    return [each] * whole + ([rest] if rest else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedLfsFile:
    blob: LinkedBlob
    # A path and a ref where its pointer stands now; None when it stands only in older commits.
    path: str | None = None
    ref: str | None = None
