"""Headers of safetensors files: the tensors that a file holds, with their types and shapes.

A header is JSON behind eight bytes with its length. It comes from whoever uploaded the file, so
nothing in it is taken for granted: not its length, its form, nor its numbers.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from hublet.core.dataclasses import dataclass

# Reads the bytes of a file from a position up to, and without, another one.
ByteReader = Callable[[int, int], bytes]

# A header is read at once.
MAX_HEADER_BYTES = 4 << 20
MAX_INDEX_BYTES = 4 << 20
MAX_DIMENSIONS = 16
MAX_SHARDS = 200
# More than any format has; a made-up header could name as many as it has tensors.
MAX_DTYPES = 64
# What fits into a column.
MAX_PARAMETERS = 2**62
_MAX_NUMBER = 2**63
_LONGEST_DTYPE = 20
_LENGTH_BYTES = 8

WHOLE_MODEL = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_WEIGHTS = re.compile(r"[^/]+\.safetensors")
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")


class HeaderDamaged(Exception):
    """The header is not what the format says."""


class HeaderTooLarge(Exception):
    """The header is longer than what is read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsHeader:
    tensors: tuple[Tensor, ...]
    # What the file says about itself.
    metadata: dict[str, Any]


def read_header(read: ByteReader, *, size: int) -> SafetensorsHeader:
    """Read the header of a file. Raises HeaderDamaged or HeaderTooLarge."""
    return check_header(read_raw_header(read, size=size))


def read_raw_header(read: ByteReader, *, size: int) -> dict[str, Any]:
    """Read the header as its author wrote it. Raises HeaderDamaged or HeaderTooLarge."""
    prefix = read(0, min(_LENGTH_BYTES, size))
    length = int.from_bytes(prefix, "little")
    if len(prefix) < _LENGTH_BYTES or length > size - _LENGTH_BYTES:
        raise HeaderDamaged
    if length > MAX_HEADER_BYTES:
        raise HeaderTooLarge
    return _parse(read(_LENGTH_BYTES, _LENGTH_BYTES + length))


def check_header(header: dict[str, Any]) -> SafetensorsHeader:
    """Return what a header says. Raises HeaderDamaged."""
    about = header.get("__metadata__", {})
    return SafetensorsHeader(
        tensors=tuple(
            _tensor(name, value) for name, value in header.items() if name != "__metadata__"
        ),
        metadata=about if isinstance(about, dict) else {},
    )


def _parse(text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise HeaderDamaged from None
    if not isinstance(data, dict):
        raise HeaderDamaged
    return data


def _tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, dict) or not isinstance(value.get("dtype"), str):
        raise HeaderDamaged
    shape = checked_shape(value.get("shape"))
    return Tensor(name=name, dtype=value["dtype"][:_LONGEST_DTYPE], shape=shape)


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a tensor. Raises HeaderDamaged for what is none."""
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise HeaderDamaged
    if not all(type(number) is int and 0 <= number < _MAX_NUMBER for number in shape):
        raise HeaderDamaged
    return tuple(shape)


def count_parameters(headers: Iterable[SafetensorsHeader]) -> dict[str, int]:
    """Return the parameters in all these headers by type; none at all for numbers made up."""
    counted: Counter[str] = Counter()
    for header in headers:
        for tensor in header.tensors:
            counted[tensor.dtype] += tensor.parameters
    if len(counted) > MAX_DTYPES or sum(counted.values()) > MAX_PARAMETERS:
        return {}
    return dict(counted)


def shards_in_index(text: bytes) -> tuple[str, ...]:
    """Return the files that an index names, each once; none when it is damaged."""
    try:
        weight_map = _parse(text).get("weight_map")
    except HeaderDamaged:
        return ()
    names = weight_map.values() if isinstance(weight_map, dict) else ()
    found = dict.fromkeys(name for name in names if isinstance(name, str))
    return tuple(found) if len(found) <= MAX_SHARDS else ()


def weights_among(paths: Collection[str], *, indexed: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the files that make up a model: the whole one, its shards, or the only one there is.

    `indexed` are the shards that the index file names; all of them must be there.
    """
    found = [path for path in paths if _WEIGHTS.fullmatch(path)]
    if WHOLE_MODEL in found:
        return (WHOLE_MODEL,)
    if indexed and set(indexed) <= set(found):
        return tuple(indexed)
    shards = tuple(path for path in found if _SHARD.fullmatch(path))
    if shards:
        return shards if len(shards) <= MAX_SHARDS else ()
    return tuple(found) if len(found) == 1 else ()
