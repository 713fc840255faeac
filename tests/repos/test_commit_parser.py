"""The body of a commit, in pieces of any size."""

import base64
import gc
import json
import tracemalloc
import weakref
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hublet.repos.commits import operations
from hublet.repos.commits.intake import CommitIntake
from hublet.repos.commits.operations import (
    AddFile,
    AddLfsFile,
    CommitHeader,
    DeleteFile,
    DeleteFolder,
    Operation,
)
from hublet.repos.commits.parser import CommitParser
from hublet.repos.errors import InvalidCommitLine
from hublet.storage.object_store import LocalStore

DIGEST = "ab" * 32

BODY = b"\r\n".join(
    [
        b'{"key":"header","value":{"summary":"S \\"q\\" {[","description":"\\\\","parentCommit":null}}',
        b'  {"value" : {"encoding":"base64" , "path":"content", "content" : "QUJD\\/w=="},"key":"file"}',
        b"",
        b'{"key":"file","value":{"content":"","path":"empty","encoding":"base64"}}',
        b'{"key":"file","value":{"content":"QU\\u004a\\u0044","path":"value","encoding":"base64"}}',
        b'{"key":"file","value":{"c\\u006fntent":"QUI=","path":"escaped","encoding":"base64"}}',
        b'{"key":"lfsFile","value":{"path":"\\u00fc\\n","algo":"sha256","oid":"%s","size":7}}'
        % DIGEST.encode(),
        b'{"key":"lfsFile","value":{"path":"copy","oid":"%s"}}' % DIGEST.encode(),
        b'{"key":"deletedFile","value":{"path":"a\\\\"}}',
        b'{"key":"deletedFolder","value":{"path":"b/"}}',
        b'{"key":"deletedFolder","value":{"path":"c"}}',
    ]
)
EXPECTED = [
    ("content", b"ABC\xff"),
    ("empty", b""),
    ("value", b"ABC"),
    ("escaped", b"AB"),
    AddLfsFile(path="ü\n", sha256=DIGEST, size=7),
    AddLfsFile(path="copy", sha256=DIGEST, size=None),
    DeleteFile(path="a\\"),
    DeleteFolder(path="b"),
    DeleteFolder(path="c"),
]


def parsed(folder: Path, pieces: list[bytes]) -> tuple[CommitHeader, list[object]]:
    taken: list[object] = []

    def take(operation: Operation) -> None:
        if isinstance(operation, AddFile):
            taken.append((operation.path, operation.content.read_all()))
            operation.content.close()
        else:
            taken.append(operation)

    parser = CommitParser(LocalStore(folder), take, largest_file=10**9)
    try:
        for piece in pieces:
            parser.feed(piece)
        return parser.finish(), taken
    finally:
        parser.close()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(data), *places})
    return [data[start:end] for start, end in pairwise(ends)]


@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(places=st.lists(st.integers(0, len(BODY)), max_size=30))
def test_any_cut_of_the_bytes_reads_the_same(tmp_path: Path, places: list[int]) -> None:
    header, taken = parsed(tmp_path, cut(BODY, places))

    assert header == CommitHeader(summary='S "q" {[', description="\\", parent=None)
    assert taken == EXPECTED


def test_byte_by_byte_reads_the_same(tmp_path: Path) -> None:
    _, taken = parsed(tmp_path, [bytes([byte]) for byte in BODY])

    assert taken == EXPECTED


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    files=st.dictionaries(st.text(min_size=1), st.binary(max_size=200), max_size=5),
    places=st.lists(st.integers(0, 4000), max_size=30),
    ascii_only=st.booleans(),
)
def test_what_the_client_writes_is_read_back(
    tmp_path: Path, files: dict[str, bytes], places: list[int], *, ascii_only: bool
) -> None:
    lines: list[dict[str, object]] = [{"key": "header", "value": {"summary": "S"}}]
    for path, data in files.items():
        content = base64.b64encode(data).decode()
        lines.append(
            {"key": "file", "value": {"content": content, "path": path, "encoding": "base64"}}
        )
    text = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)

    _, taken = parsed(tmp_path, cut(text.encode(), places))

    assert taken == list(files.items())


@pytest.mark.parametrize("before", [0, 1, 255, 256, 257, 65_791, 65_792, 65_793, 200_000])
@pytest.mark.parametrize("mark", ["", "\\/"])
def test_the_end_of_a_content_is_found_however_far_it_is(
    tmp_path: Path, before: int, mark: str
) -> None:
    text = "A" * before + mark
    text += "A" * (-(before + len(mark) // 2) % 4)
    head = '{"key":"header","value":{"summary":"S"}}'
    first = '{"key":"file","value":{"content":"' + text + '","path":"p","encoding":"base64"}}'
    body = "\n".join([head, first, first.replace('"p"', '"q"')])

    _, taken = parsed(tmp_path, [body.encode()])

    data = base64.b64decode(text.replace("\\", ""))
    assert taken == [("p", data), ("q", data)]


@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.binary(max_size=60), places=st.lists(st.integers(0, 60), max_size=5))
def test_base64_is_decoded_whatever_the_pieces(
    tmp_path: Path, data: bytes, places: list[int]
) -> None:
    content = operations.FileContent(LocalStore(tmp_path))
    decoder = operations.Base64Decoder(content)
    for piece in cut(base64.b64encode(data), places):
        decoder.feed(piece)

    assert decoder.end().read_all() == data


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"QUI=", b"QUJD"], id="more behind the padding"),
        pytest.param([b"QUI", b"=", b"Q"], id="a rest behind the padding"),
        pytest.param([b"QUJD", b"Q"], id="too short"),
        pytest.param([b"QUJD", b"===="], id="padding alone"),
        pytest.param([b"QU-_"], id="the other alphabet"),
        pytest.param([b"QUJD\r\n"], id="lines"),
    ],
)
def test_what_is_no_base64_is_refused(tmp_path: Path, pieces: list[bytes]) -> None:
    decoder = operations.Base64Decoder(operations.FileContent(LocalStore(tmp_path)))

    def feed() -> None:
        for piece in pieces:
            decoder.feed(piece)
        decoder.end()

    with pytest.raises(operations.InvalidBase64):
        feed()


def test_a_line_of_any_length_takes_little_memory(tmp_path: Path) -> None:
    piece = base64.b64encode(b"x" * 786_432)
    parser = CommitParser(LocalStore(tmp_path), lambda _: None, largest_file=10**9)
    parser.feed(b'{"key":"header","value":{"summary":"S"}}\n{"key":"file","value":{"content":"')
    tracemalloc.start()
    try:
        for _ in range(64):
            parser.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        parser.close()

    assert peak < 8 * len(piece)
    assert list((tmp_path / "blobs" / "incoming").iterdir()) == []


def test_small_content_never_touches_the_disk(tmp_path: Path) -> None:
    parsed(tmp_path, [BODY])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"other": "A" * 70_000}, id="another member"),
        pytest.param({"x": {"content": "A" * 70_000}}, id="a content further in"),
        pytest.param({"content": {"y": "A" * 70_000}}, id="a member of the content"),
        pytest.param({"content": ["A" * 70_000]}, id="a list as content"),
    ],
)
def test_only_the_content_of_a_value_may_be_long(tmp_path: Path, value: dict[str, object]) -> None:
    parser = CommitParser(LocalStore(tmp_path), lambda _: None, largest_file=10**9)
    parser.feed(b'{"key":"header","value":{"summary":"S"}}\n')

    with pytest.raises(InvalidCommitLine, match="Line 2: it must have at most 65536 bytes"):
        parser.feed(json.dumps({"key": "file", "value": value}).encode() + b"\n")


def test_what_a_closed_intake_held_does_not_wait_for_a_collection(tmp_path: Path) -> None:
    intake = CommitIntake(
        store=LocalStore(tmp_path), folder=tmp_path, largest_file=1000, credential_prefix="hf_"
    )
    parser = CommitParser(LocalStore(tmp_path), lambda _: None, largest_file=1000)
    left: list[weakref.ref[object]] = [weakref.ref(intake), weakref.ref(parser)]
    gc.disable()
    try:
        for each in (intake, parser):
            each.feed(BODY[:40])
            each.close()
        del intake, parser, each

        assert [ref() for ref in left] == [None, None]
    finally:
        gc.enable()
