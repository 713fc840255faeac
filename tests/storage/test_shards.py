"""Shards: what is read from an upload, what is refused, and what a chunk query is answered with."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.storage.errors import InvalidShard
from hublet.storage.shards import Segment, ShardFile, deduplication_shard, parse
from hublet.storage.verification import verify_file, verify_xorb_claim
from hublet.storage.xet_hashes import ZERO_HASH, chunk_hash, file_hash, keyed_hash, xorb_hash
from hublet.storage.xorbs import XorbLayout, verify
from storage.xet_content import (
    END,
    make_shard,
    make_xorb,
    nodes,
    record,
    shard_file,
    shard_header,
    shard_xorb,
)

CONTENTS = [b"one" * 3000, b"two" * 4000, b"three" * 2000]
SHA256 = hashlib.sha256(b"".join(CONTENTS)).hexdigest()
XORB, DATA = make_xorb(CONTENTS)
LAYOUT = verify(DATA, XORB)
WHOLE = Segment(XORB, LAYOUT.size, 0, 3)


def layouts() -> dict[bytes, XorbLayout]:
    return {XORB: LAYOUT}


def only_file(*segments: Segment, contents: list[bytes] = CONTENTS) -> ShardFile:
    return parse(make_shard([shard_file(contents, segments)], [])).files[0]


def test_a_shard_of_the_public_client_is_read() -> None:
    shard = parse(
        make_shard([shard_file(CONTENTS, [WHOLE], sha256=SHA256)], [shard_xorb(CONTENTS)])
    )
    [file], [xorb] = shard.files, shard.xorbs
    assert file.hash == file_hash(nodes(CONTENTS))
    assert list(file.segments) == [WHOLE]
    assert file.sha256 == SHA256
    assert file.size == LAYOUT.size
    assert xorb.hash == XORB
    verify_file(file, layouts())
    verify_xorb_claim(xorb, LAYOUT)


def test_a_bucket_upload_has_no_sha256() -> None:
    assert only_file(WHOLE).sha256 is None


def test_an_empty_file_has_the_hash_of_zeros() -> None:
    data = make_shard([record(ZERO_HASH, 1 << 31, 0, 0, 0)], [])
    assert len(data) == 192
    [file] = parse(data).files
    assert (file.hash, file.size) == (ZERO_HASH, 0)
    verify_file(file, {})


def test_what_follows_the_last_record_is_ignored() -> None:
    body = make_shard([shard_file(CONTENTS, [WHOLE])], [shard_xorb(CONTENTS)])
    assert parse(body + bytes(200)) == parse(body)


def test_a_file_may_name_a_xorb_often_and_in_any_order() -> None:
    contents = [CONTENTS[2], CONTENTS[0], CONTENTS[1], CONTENTS[2]]
    last, rest = Segment(XORB, 10000, 2, 3), Segment(XORB, LAYOUT.size, 0, 3)
    verify_file(only_file(last, rest, contents=contents), layouts())


REFUSED = [
    ("nothing", b"", "shorter than its header"),
    ("another tag", shard_header(tag=b"x" * 32) + END + END, "not a shard"),
    ("another version", shard_header(version=3) + END + END, "not a shard"),
    ("no end of the files", shard_header(), "ends before the 1 records"),
    ("no end of the xorbs", shard_header() + END, "ends before the 1 records"),
    ("half a record", shard_header() + END + END[:40], "ends before the 1 records"),
    ("four thousand million segments", shard_header() + record(XORB, 0, 2**32 - 1, 0, 0), "before the 4294967295 records"),
    ("four thousand million chunks", shard_header() + END + record(XORB, 0, 2**32 - 1, 0, 0), "1 to 8192 chunks"),
    ("a xorb without chunks", shard_header() + END + record(XORB, 0, 0, 0, 0), "1 to 8192 chunks"),
    ("a chunk too long", shard_header() + END + record(XORB, 0, 1, 0, 0) + record(XORB, 0, 131073, 0, 0) + END, "1 to 131072 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "sentence"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_what_is_no_shard_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(InvalidShard, match=sentence):
        parse(data)


CLAIMS = [
    ("another xorb", Segment(chunk_hash(b"other"), LAYOUT.size, 0, 3), "was not uploaded here"),
    ("no chunks", Segment(XORB, 0, 2, 2), "names the chunks"),
    ("chunks that are not there", Segment(XORB, LAYOUT.size, 0, 4), "names the chunks"),
    ("chunks backwards", Segment(XORB, LAYOUT.size, 3, 0), "names the chunks"),
    ("another length", Segment(XORB, LAYOUT.size - 1, 0, 3), "length"),
    ("a part of the chunks", Segment(XORB, 9000, 0, 1), "make up the file"),
]


@pytest.mark.parametrize(
    ("segment", "sentence"), [each[1:] for each in CLAIMS], ids=[each[0] for each in CLAIMS]
)
def test_a_false_segment_is_refused(segment: Segment, sentence: str) -> None:
    with pytest.raises(InvalidShard, match=sentence):
        verify_file(only_file(segment), layouts())


def test_a_file_without_verification_records_is_refused() -> None:
    records = record(XORB, 0, 1, 0, 0) + record(XORB, 0, LAYOUT.size, 0, 3)
    [file] = parse(make_shard([records], [])).files
    with pytest.raises(InvalidShard, match="needs a verification record"):
        verify_file(file, layouts())


def test_a_false_verification_record_is_refused() -> None:
    with pytest.raises(InvalidShard, match="does not match its chunks"):
        verify_file(only_file(WHOLE, contents=[*CONTENTS[:2], b"else"]), layouts())


def test_a_false_file_hash_is_refused() -> None:
    file = shard_file(CONTENTS, [WHOLE])
    [parsed] = parse(make_shard([chunk_hash(b"else") + file[32:]], [])).files
    with pytest.raises(InvalidShard, match="do not make up the file"):
        verify_file(parsed, layouts())


def test_false_chunks_of_a_xorb_are_refused() -> None:
    [xorb] = parse(make_shard([], [shard_xorb([*CONTENTS[:2], b"else"])])).xorbs
    with pytest.raises(InvalidShard, match="are not its own"):
        verify_xorb_claim(xorb, LAYOUT)


def test_the_response_to_a_chunk_query_helps_only_who_has_the_chunk() -> None:
    key = b"k" * 32
    data = deduplication_shard([(XORB, LAYOUT)], key=key, created_at=1000, expires_at=2000)
    shard = parse(data)
    assert shard.files == []
    [xorb] = shard.xorbs
    assert xorb.hash == XORB
    assert [node.hash for node in xorb.chunks] == [
        keyed_hash(node.hash, key) for node in nodes(CONTENTS)
    ]
    assert not any(node.hash in data for node in nodes(CONTENTS))
    footer = data[-200:]
    assert struct.unpack("<2Q", data[32:48]) == (2, 200)
    assert struct.unpack("<3Q", footer[:24]) == (1, 48, 96)
    assert footer[72:104] == key
    assert struct.unpack("<2Q", footer[104:120]) == (1000, 2000)
    assert struct.unpack("<Q", footer[-8:]) == (len(data) - 200,)


@given(st.binary(max_size=400))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    try:
        shard = parse(shard_header() + data)
    except InvalidShard:
        return
    for file in shard.files:
        if file.hash != ZERO_HASH:
            with pytest.raises(InvalidShard):
                verify_file(file, layouts())


@given(st.data())
def test_no_change_of_a_shard_makes_another_file(data: st.DataObject) -> None:
    good = make_shard([shard_file(CONTENTS, [WHOLE], sha256=SHA256)], [shard_xorb(CONTENTS)])
    at = data.draw(st.integers(48, len(good) - 1))
    changed = good[:at] + bytes([good[at] ^ 1 << data.draw(st.integers(0, 7))]) + good[at + 1 :]
    try:
        shard = parse(changed)
        for file in shard.files:
            verify_file(file, layouts())
    except InvalidShard:
        return
    assert all(list(file.segments) == [WHOLE] for file in shard.files)
    assert all(xorb_hash(LAYOUT.chunks(0, 3)) == next(file.segments).xorb for file in shard.files)
