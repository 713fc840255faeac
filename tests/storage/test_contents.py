"""The bytes of a blob that lies in pieces of xorbs, read whole and in part."""

from pathlib import Path

import pytest

from hublet.storage import contents
from hublet.storage.object_store import LocalStore
from hublet.storage.records import BlobSegment, Content
from hublet.storage.xorb_objects import put_xorb, read_layout
from hublet.storage.xorbs import XorbLayout, form_of, verify
from storage.xet_content import make_xorb

CHUNKS = [bytes([letter]) * length for letter, length in zip(b"abcdef", range(3, 9), strict=True)]
WHOLE = b"".join(CHUNKS)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def put(store: LocalStore, scheme: int) -> tuple[str, XorbLayout]:
    digest, data = make_xorb(CHUNKS, scheme)
    layout = verify(data, digest)
    with store.new_spool(hashed=False) as spool:
        spool.write(data)
        xorb = put_xorb(store, spool, layout, form=form_of(data))
    assert read_layout(store, xorb) == layout
    return xorb.name, layout


def segment(name: str, layout: XorbLayout, start: int, end: int) -> BlobSegment:
    first, last = layout.stored_range(start, end)
    return BlobSegment(
        xorb=name,
        start_chunk=start,
        end_chunk=end,
        start_byte=first,
        end_byte=last,
        size=layout.length(start, end),
    )


@pytest.mark.parametrize("scheme", [0, 1, 2])
def test_every_range_of_a_blob_is_put_together(store: LocalStore, scheme: int) -> None:
    name, layout = put(store, scheme)
    # The second half comes first, and a chunk of it twice.
    segments = (
        segment(name, layout, 3, 6),
        segment(name, layout, 0, 3),
        segment(name, layout, 4, 5),
    )
    expected = b"".join([*CHUNKS[3:], *CHUNKS[:3], CHUNKS[4]])
    content = Content(sha256="0" * 64, size=len(expected), is_whole=False, segments=segments)

    for start in range(len(expected)):
        for end in range(start, len(expected) + 1):
            read = b"".join(contents.pieces(store, content, start, end))
            assert read == expected[start:end]


def test_pieces_of_the_store_may_end_anywhere(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, layout = put(store, 1)
    monkeypatch.setattr("hublet.storage.object_store._PIECE_BYTES", 3)
    content = Content(
        sha256="0" * 64, size=len(WHOLE), is_whole=False, segments=(segment(name, layout, 0, 6),)
    )

    assert b"".join(contents.pieces(store, content, 0, len(WHOLE))) == WHOLE
    assert b"".join(contents.pieces(store, content, 4, 20)) == WHOLE[4:20]
