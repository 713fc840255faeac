"""Previews of weights: the tensors that the header of a safetensors or GGUF file names."""

import math
from collections import Counter
from collections.abc import Iterable
from struct import Struct
from typing import Any

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.safetensors import (
    MAX_DIMENSIONS,
    HeaderDamaged,
    HeaderTooLarge,
    checked_shape,
    read_header,
)
from hublet.web.rendering import ByteReader
from hublet.web.rendering.code import escape_line, make_visible

VERSION = "tensors-1"

# In a GGUF file the words of the model stand before the tensors, so more of it has to be passed
# over than of the header of a safetensors file.
MAX_GGUF_BYTES = 16 << 20
MAX_TENSORS = 2_000
MAX_METADATA = 100
MAX_TEXT_CHARACTERS = 300

_DAMAGED = "The header of this file is damaged."
_TOO_LARGE = "The header of this file is too large to be shown."
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRow:
    name: Markup
    dtype: str
    shape: tuple[int, ...]
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPreview:
    tensors: tuple[TensorRow, ...] = ()
    # Of all tensors, also those that are not listed.
    tensor_count: int = 0
    parameters: int = 0
    # Parameters by type, the most first.
    by_dtype: tuple[tuple[str, int], ...] = ()
    # What the file says about itself.
    metadata: tuple[tuple[Markup, Markup], ...] = ()
    refusal: str = ""


def preview_safetensors(read: ByteReader, *, size: int) -> TensorPreview:
    try:
        header = read_header(read, size=size)
    except HeaderDamaged:
        return TensorPreview(refusal=_DAMAGED)
    except HeaderTooLarge:
        return TensorPreview(refusal=_TOO_LARGE)
    rows = [_row(each.name, each.dtype, each.shape) for each in header.tensors]
    return _preview(rows, header.metadata.items())


def preview_gguf(read: ByteReader, *, size: int) -> TensorPreview:
    try:
        return _gguf(_Cursor(read, size))
    except HeaderDamaged:
        return TensorPreview(refusal=_DAMAGED)
    except HeaderTooLarge:
        return TensorPreview(refusal=_TOO_LARGE)


def _row(name: str, dtype: str, shape: tuple[int, ...]) -> TensorRow:
    return TensorRow(name=_text(name), dtype=dtype, shape=shape, parameters=math.prod(shape))


def _preview(rows: list[TensorRow], metadata: Iterable[tuple[str, Any]]) -> TensorPreview:
    by_dtype: Counter[str] = Counter()
    for row in rows:
        by_dtype[row.dtype] += row.parameters
    return TensorPreview(
        tensors=tuple(rows[:MAX_TENSORS]),
        tensor_count=len(rows),
        parameters=sum(by_dtype.values()),
        by_dtype=tuple(by_dtype.most_common()),
        metadata=tuple((_text(name), _text(str(value))) for name, value in metadata)[:MAX_METADATA],
    )


def _text(text: str) -> Markup:
    cut = text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}…"
    return escape_line(make_visible(cut))


_U32, _U64 = Struct("<I"), Struct("<Q")
_STRING, _ARRAY = 8, 9
# The kinds of single values, by their number in the format.
_SINGLE = {
    0: Struct("<B"), 1: Struct("<b"), 2: Struct("<H"), 3: Struct("<h"), 4: _U32, 5: Struct("<i"),
    6: Struct("<f"), 7: Struct("<?"), 10: _U64, 11: Struct("<q"), 12: Struct("<d"),
}  # fmt: skip
_GGML_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
    11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS",
    18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8",
    25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0",
    39: "MXFP4",
}  # fmt: skip
_GGUF_VERSIONS = {2, 3}
_MAX_KEYS = 10_000
_MAX_GGUF_TENSORS = 100_000


class _Cursor:
    """Reads numbers and texts one after another, in chunks and up to a limit."""

    def __init__(self, read: ByteReader, size: int) -> None:
        self._read, self._size = read, size
        self._chunk, self._start, self._position = b"", 0, 0

    def take(self, count: int) -> bytes:
        self._reach(count)
        begin = self._position - self._start
        self._position += count
        return self._chunk[begin : begin + count]

    def skip(self, count: int) -> None:
        self._check(count)
        self._position += count

    def number(self, form: Struct) -> Any:
        return form.unpack(self.take(form.size))[0]

    def text(self) -> str:
        length = self.number(_U64)
        self._check(length)
        return self.take(length).decode(errors="replace")

    def _check(self, count: int) -> None:
        if self._position + count > self._size:
            raise HeaderDamaged
        if self._position + count > MAX_GGUF_BYTES:
            raise HeaderTooLarge

    def _reach(self, count: int) -> None:
        self._check(count)
        begin = self._position - self._start
        if begin < 0 or begin + count > len(self._chunk):
            end = min(self._position + max(count, _CHUNK), self._size)
            self._chunk, self._start = self._read(self._position, end), self._position
            if len(self._chunk) < count:
                raise HeaderDamaged


def _gguf(cursor: _Cursor) -> TensorPreview:
    if cursor.take(4) != b"GGUF" or cursor.number(_U32) not in _GGUF_VERSIONS:
        raise HeaderDamaged
    tensors, keys = cursor.number(_U64), cursor.number(_U64)
    if tensors > _MAX_GGUF_TENSORS or keys > _MAX_KEYS:
        raise HeaderDamaged
    metadata = [(cursor.text(), _gguf_value(cursor)) for _ in range(keys)]
    return _preview([_gguf_tensor(cursor) for _ in range(tensors)], metadata)


def _gguf_value(cursor: _Cursor) -> Any:
    kind = cursor.number(_U32)
    if kind == _STRING:
        return cursor.text()
    if kind == _ARRAY:
        return _gguf_array(cursor)
    if kind not in _SINGLE:
        raise HeaderDamaged
    return cursor.number(_SINGLE[kind])


def _gguf_array(cursor: _Cursor) -> str:
    """Pass over an array and say how long it is; nobody reads the words of a model on a page."""
    kind, count = cursor.number(_U32), cursor.number(_U64)
    if kind in _SINGLE:
        cursor.skip(count * _SINGLE[kind].size)
    elif kind == _STRING:
        # Each has a length, so that there cannot be more of them than bytes.
        for _ in range(count):
            cursor.skip(cursor.number(_U64))
    else:
        raise HeaderDamaged
    return f"{count:,} values"


def _gguf_tensor(cursor: _Cursor) -> TensorRow:
    name, dimensions = cursor.text(), cursor.number(_U32)
    if dimensions > MAX_DIMENSIONS:
        raise HeaderDamaged
    shape = [cursor.number(_U64) for _ in range(dimensions)]
    kind = cursor.number(_U32)
    cursor.skip(_U64.size)
    return _row(name, _GGML_TYPES.get(kind, f"type {kind}"), checked_shape(shape))
