"""Which part of a file a Range header asks for."""

import pytest

from hublet.core.http.conditional_requests import ByteRange, RangeNotSatisfiable, parse_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param(None, None, id="no header: everything"),
        pytest.param("bytes=0-", ByteRange(0, 10), id="from the start"),
        pytest.param("bytes=3-", ByteRange(3, 10), id="an open end"),
        pytest.param("bytes=3-5", ByteRange(3, 6), id="both ends, the last one included"),
        pytest.param("bytes=0-0", ByteRange(0, 1), id="one byte"),
        pytest.param("bytes=9-99", ByteRange(9, 10), id="an end behind the file's"),
        pytest.param("bytes=-4", ByteRange(6, 10), id="so many at the end"),
        pytest.param("bytes=-99", ByteRange(0, 10), id="more at the end than there are"),
        pytest.param(" Bytes = 1 - 2 ", ByteRange(1, 3), id="blanks and capitals"),
        pytest.param("bytes=5-3", None, id="backwards is no range"),
        pytest.param("bytes=-", None, id="neither end"),
        pytest.param("bytes=1-2,4-5", None, id="several parts: everything"),
        pytest.param("lines=1-2", None, id="another unit"),
        pytest.param("bytes=a-b", None, id="no numbers"),
    ],
)
def test_a_part_is_found(header: str | None, expected: ByteRange | None) -> None:
    assert parse_range(header, size=10) == expected


@pytest.mark.parametrize(
    ("header", "size"),
    [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)],
)
def test_a_part_behind_the_end_is_refused(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable) as caught:
        parse_range(header, size=size)

    assert caught.value.headers == {"Content-Range": f"bytes */{size}"}


def test_a_part_is_told_with_the_whole() -> None:
    assert (ByteRange(3, 6).header(10), ByteRange(3, 6).length) == ("bytes 3-5/10", 3)
