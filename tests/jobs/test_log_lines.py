"""Lines of a log by their numbers: ranges, the end, a moment, and what has a text."""

from pathlib import Path

import pytest

from hublet.jobs.logs import lines
from hublet.jobs.logs.lines import LogLines, LogRange, read_new


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of 5,000 lines in many blocks."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(lines, "_SEARCH_BYTES", 1500)
    path = tmp_path / "log"
    path.write_text("".join(f"{1000 + number} line {number}\n" for number in range(1, 5001)))
    return path


def texts(found: LogRange) -> list[str]:
    assert all(line.at == 1000 + line.number for line in found.lines)
    return [line.text for line in found.lines]


def expected(first: int, last: int) -> list[str]:
    return [f"line {number}" for number in range(first, last + 1)]


@pytest.mark.parametrize("first", [1, 2, 66, 67, 999, 4990, 5000])
def test_a_range_is_found_wherever_it_begins(log: Path, first: int) -> None:
    found = LogLines().read(log, first, count=100)

    assert texts(found) == expected(first, min(5000, first + 99))
    assert found.total == 5000


def test_what_is_beyond_the_log_is_empty(log: Path, tmp_path: Path) -> None:
    assert LogLines().read(log, 5001, count=10).lines == ()
    assert LogLines().read(tmp_path / "none", 1, count=10) == LogRange(lines=(), total=0)
    assert LogLines().read_tail(tmp_path / "none", count=10) == LogRange(lines=(), total=0)
    assert LogLines().search(tmp_path / "none", "x", most=1).total == 0


def test_a_log_that_grows_is_read_on(log: Path) -> None:
    reader = LogLines()
    assert texts(reader.read_tail(log, count=3)) == expected(4998, 5000)
    end = reader.read_tail(log, count=1).end
    with log.open("a") as file:
        file.write("6001 line 5001\n6002 lin")

    assert texts(reader.read_tail(log, count=2)) == expected(5000, 5001)
    assert texts(read_new(log, end, first=5001)) == ["line 5001"]
    with log.open("a") as file:
        file.write("e 5002\n")
    assert texts(reader.read_tail(log, count=2)) == expected(5001, 5002)


def test_very_long_lines_are_fewer(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{n} {'x' * 5000}\n" for n in range(1, 101)))

    tail = LogLines().read_tail(path, count=50, most_bytes=12_000)
    head = LogLines().read(path, 10, count=50, most_bytes=12_000)

    assert [line.number for line in tail.lines] == [99, 100]
    assert [line.number for line in head.lines] == [10, 11]
    assert len(head.lines[0].text) == 5000


def test_a_moment_is_found(log: Path) -> None:
    reader = LogLines()
    assert reader.find_moment(log, 1000 + 777) == 777
    assert reader.find_moment(log, 0) == 1
    assert reader.find_moment(log, 10**9) == 5000


@pytest.mark.parametrize(
    ("text", "count", "first"),
    [
        ("line 4321", 1, [4321]),
        ("LINE 43", 111, [43, 430, 431]),
        # Not in the time of a line, 1001 to 6000.
        ("1001", 1, [1001]),
        ("nothing", 0, []),
    ],
)
def test_a_text_is_found_in_all_lines(log: Path, text: str, count: int, first: list[int]) -> None:
    found = LogLines().search(log, text, most=3)

    assert [line.number for line in found.lines] == first
    assert (found.count, found.total) == (count, 5000)
    assert all(line.text == f"line {line.number}" for line in found.lines)


def test_a_search_goes_on_where_it_stopped(log: Path) -> None:
    found = LogLines().search(log, "line 43", first=432, most=2)

    assert [line.number for line in found.lines] == [432, 433]
    assert found.count == 111


def test_a_broken_line_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1 one\n\xff\xfe\n\n3 three\n")

    found = LogLines().read_tail(path, count=10)

    assert [(line.at, line.text) for line in found.lines] == [
        (1, "one"),
        (0, ""),
        (0, ""),
        (3, "three"),
    ]
