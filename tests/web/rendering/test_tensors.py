"""Previews of weights."""

import json
import struct

import pytest

from hublet.repos.safetensors import MAX_HEADER_BYTES
from hublet.web.rendering import tensors
from hublet.web.rendering.tensors import TensorPreview, preview_gguf, preview_safetensors

DAMAGED = "The header of this file is damaged."
TOO_LARGE = "The header of this file is too large to be shown."


def safetensors(header: object, *, length: int | None = None) -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(data) if length is None else length) + data + b"\x00" * 64


def tensor(dtype: str, *shape: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 0]}


def preview(data: bytes) -> TensorPreview:
    return preview_safetensors(lambda start, end: data[start:end], size=len(data))


def test_a_header_becomes_a_table_with_totals() -> None:
    found = preview(
        safetensors({
            "__metadata__": {"format": "pt"},
            "a.<weight>": tensor("BF16", 4, 8),
            "b": tensor("BF16", 2),
            "c": tensor("F32"),
        })
    )  # fmt: skip
    assert [(row.name, row.dtype, row.shape, row.parameters) for row in found.tensors] == [
        ("a.&lt;weight&gt;", "BF16", (4, 8), 32),
        ("b", "BF16", (2,), 2),
        ("c", "F32", (), 1),
    ]
    assert (found.tensor_count, found.parameters) == (3, 35)
    assert found.by_dtype == (("BF16", 34), ("F32", 1))
    assert found.metadata == (("format", "pt"),)


def test_only_two_ranges_are_read() -> None:
    data = safetensors({"a": tensor("F32", 1)})
    ranges: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        ranges.append((start, end))
        return data[start:end]

    preview_safetensors(read, size=10**12)
    assert ranges == [(0, 8), (8, len(data) - 64)]


def test_only_so_many_tensors_are_listed_but_all_are_counted() -> None:
    many = {f"t{number}": tensor("F32", 2) for number in range(tensors.MAX_TENSORS + 5)}
    found = preview(safetensors(many))
    assert len(found.tensors) == tensors.MAX_TENSORS
    assert (found.tensor_count, found.parameters) == (len(many), 2 * len(many))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        safetensors({}, length=10**6),
        safetensors({}, length=2**64 - 1),
        safetensors(b"nope"),
        safetensors(b"[" * 100_000),
        safetensors([]),
        safetensors({"a": 1}),
        safetensors({"a": {}}),
        safetensors({"a": {"dtype": 1, "shape": []}}),
        safetensors({"a": {"dtype": "F32"}}),
        safetensors({"a": tensor("F32", -1)}),
        safetensors({"a": tensor("F32", 2**63)}),
        safetensors({"a": {"dtype": "F32", "shape": [True]}}),
        safetensors({"a": {"dtype": "F32", "shape": ["1"]}}),
        safetensors({"a": tensor("F32", *[2] * 17)}),
        safetensors(b"\xff\xfe{}"),
    ],
)
def test_a_damaged_header_is_refused_with_a_sentence(data: bytes) -> None:
    assert preview(data) == TensorPreview(refusal=DAMAGED)


def test_a_large_header_is_not_read() -> None:
    length = MAX_HEADER_BYTES + 1
    data = safetensors({}, length=length)
    found = preview_safetensors(lambda start, end: data[start:end], size=10**9)
    assert found == TensorPreview(refusal=TOO_LARGE)


def test_metadata_of_another_kind_does_no_harm() -> None:
    assert preview(safetensors({"__metadata__": [1]})).metadata == ()


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(
    *, keys: list[bytes] | None = None, infos: list[bytes] | None = None, version: int = 3
) -> bytes:
    keys, infos = keys or [], infos or []
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos), len(keys))
    return head + b"".join(keys) + b"".join(infos)


def info(name: str, kind: int, *shape: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)


WORDS = text("words") + struct.pack("<IIQ", 9, 8, 3) + text("a") + text("bb") + text("ccc")
KEYS = [
    text("general.name") + struct.pack("<I", 8) + text("<Engine>"),
    text("layers") + struct.pack("<II", 4, 32),
    text("scale") + struct.pack("<If", 6, 0.5),
    WORDS,
    text("scores") + struct.pack("<IIQ3f", 9, 6, 3, 0, 1, 2),
]


def preview_of_gguf(data: bytes) -> TensorPreview:
    return preview_gguf(lambda start, end: data[start:end], size=len(data))


def test_gguf_has_metadata_and_tensors() -> None:
    found = preview_of_gguf(gguf(keys=KEYS, infos=[info("a", 12, 256, 2), info("b", 99, 3)]))
    assert found.metadata == (
        ("general.name", "&lt;Engine&gt;"),
        ("layers", "32"),
        ("scale", "0.5"),
        ("words", "3 values"),
        ("scores", "3 values"),
    )
    assert [(row.name, row.dtype, row.shape) for row in found.tensors] == [
        ("a", "Q4_K", (256, 2)),
        ("b", "type 99", (3,)),
    ]
    assert found.by_dtype == (("Q4_K", 512), ("type 99", 3))


def test_gguf_is_read_in_few_chunks() -> None:
    words = text("words") + struct.pack("<IIQ", 9, 8, 50_000) + text("word") * 50_000
    data = gguf(keys=[words], infos=[info("a", 0, 2)])
    ranges: list[int] = []

    def read(start: int, end: int) -> bytes:
        ranges.append(end - start)
        return data[start:end]

    assert preview_gguf(read, size=len(data)).parameters == 2
    assert len(ranges) <= 5


def test_a_gguf_header_cut_anywhere_is_refused_with_a_sentence() -> None:
    data = gguf(keys=KEYS, infos=[info("a", 12, 256, 2)])
    for end in range(len(data)):
        assert preview_of_gguf(data[:end]) == TensorPreview(refusal=DAMAGED)


@pytest.mark.parametrize(
    "data",
    [
        gguf(version=1),
        b"GGUF" + struct.pack("<IQQ", 3, 10**9, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 10**9),
        gguf(keys=[text("a") + struct.pack("<I", 77)]),
        gguf(keys=[text("a") + struct.pack("<IIQ", 9, 9, 1)]),
        gguf(keys=[text("a") + struct.pack("<IIQ", 9, 8, 2**63)]),
        gguf(keys=[text("a") + struct.pack("<IIQ", 9, 6, 2**63)]),
        gguf(keys=[struct.pack("<Q", 2**63)]),
        gguf(infos=[text("a") + struct.pack("<I", 1_000)]),
        gguf(infos=[info("a", 0, 2**64 - 1)]),
    ],
)
def test_a_damaged_gguf_header_is_refused_with_a_sentence(data: bytes) -> None:
    assert preview_of_gguf(data) == TensorPreview(refusal=DAMAGED)


def test_a_gguf_header_is_read_only_so_far() -> None:
    head = gguf(keys=[text("a") + struct.pack("<IIQ", 9, 0, tensors.MAX_GGUF_BYTES)])
    read = 0

    def zeros(start: int, end: int) -> bytes:
        nonlocal read
        read += end - start
        return (head + bytes(end))[start:end]

    assert preview_gguf(zeros, size=10**12) == TensorPreview(refusal=TOO_LARGE)
    assert read < 10**6
