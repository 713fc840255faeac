"""Logs on the disk, as events."""

import json
from pathlib import Path
from typing import Any

import pytest

from hublet.jobs.logs import reader
from hublet.jobs.logs.reader import events_of, find_tail, read_piece, sizes_of
from jobs.log_lines import events_in, write

STAMP = 1_763_170_000_000_042
MOMENT = "2025-11-15T01:26:40.000042Z"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def lines(*texts: str) -> bytes:
    return "".join(f"{STAMP} {text}\n" for text in texts).encode()


def texts(events: str) -> list[str]:
    return [event["data"] for event in events_in(events)]


def read_all(log: Path, *, is_over: bool = True, start: int = 0) -> list[str]:
    """Return the text of each line, piece by piece."""
    found, place = list[str](), start
    while (piece := read_piece(log, place, is_over=is_over)).events:
        found += texts(piece.events)
        assert piece.end > place
        place = piece.end
    return found


def test_a_line_is_one_event_in_the_form_that_the_client_reads() -> None:
    assert events_of(lines("hello", "")) == (
        f'data: {{"data":"hello","timestamp":"{MOMENT}"}}\n\n'
        f'data: {{"data":"","timestamp":"{MOMENT}"}}\n\n'
    )


@pytest.mark.parametrize(
    ("line", "event"),
    [
        pytest.param(f"{STAMP} a  b ".encode(), {"data": "a  b "}, id="blanks are kept"),
        pytest.param(f'{STAMP} "\\'.encode(), {"data": '"\\'}, id="quotes and backslashes"),
        pytest.param(f"{STAMP} 50%\r100%".encode(), {"data": "50%\r100%"}, id="a moving line"),
        pytest.param(f"{STAMP} \x1b[1m\0".encode(), {"data": "\x1b[1m\0"}, id="colours, NUL"),
        pytest.param(f"{STAMP} é \U0001f917".encode(), {"data": "é \U0001f917"}, id="Unicode"),
        pytest.param(
            f"{STAMP} a\u2028b\u2029c\x85d\x0be".encode(),
            {"data": "a\u2028b\u2029c\x85d\x0be"},
            id="what Unicode takes for the end of a line",
        ),
        pytest.param(b"%d \xff" % STAMP, {"data": "\ufffd"}, id="no Unicode at all"),
        pytest.param(b"%d" % STAMP, {"data": ""}, id="no text"),
        pytest.param(
            b"broken line", {"data": "line", "timestamp": "1970-01-01T00:00:00.000000Z"}, id="none"
        ),
        pytest.param(
            b"9" * 17 + b" x", {"data": "x", "timestamp": "1970-01-01T00:00:00.000000Z"}, id="wrong"
        ),
    ],
)
def test_whatever_was_printed_is_one_line_of_ascii(line: bytes, event: dict[str, Any]) -> None:
    told = events_of(line + b"\n")

    assert told.isascii()
    assert told.splitlines() == [told[:-2], ""]
    assert json.loads(told[len("data: ") :]) == {"timestamp": MOMENT} | event


def test_a_log_is_read_in_pieces_of_whole_lines(log: Path) -> None:
    said = [f"line {number}" for number in range(10_000)]
    write(log, lines(*said))

    first = read_piece(log, 0, is_over=True)

    assert 0 < first.end <= reader.PIECE_BYTES
    assert read_all(log) == said


def test_a_line_that_is_longer_than_a_piece_stays_one(log: Path) -> None:
    said = ["\ufffd" * 65_536, "short"]
    write(log, lines(*said))

    assert read_all(log, is_over=False) == said


def test_what_is_written_half_is_told_when_it_is_whole(log: Path) -> None:
    write(log, lines("whole") + b"%d ha" % STAMP)
    first = read_piece(log, 0, is_over=False)
    again = read_piece(log, first.end, is_over=False)
    write(log, b"lf\n")

    assert (texts(first.events), again.events, again.end) == (["whole"], "", first.end)
    assert read_all(log, is_over=False, start=first.end) == ["half"]


def test_what_nobody_will_complete_is_told_when_the_job_is_over(log: Path) -> None:
    write(log, lines("whole") + b"%d ha" % STAMP)

    assert read_all(log) == ["whole", "ha"]


def test_a_job_that_never_began_has_no_log(log: Path) -> None:
    assert read_all(log) == []
    assert find_tail(log, 5) == 0
    assert sizes_of([log]) == [0]


@pytest.mark.parametrize(
    ("count", "asked", "said"),
    [
        pytest.param(3, 2, ["1", "2"], id="the last ones"),
        pytest.param(3, 3, ["0", "1", "2"], id="as many as there are"),
        pytest.param(3, 4, ["0", "1", "2"], id="more than there are"),
        pytest.param(3, 0, [], id="none"),
        pytest.param(0, 2, [], id="of an empty log"),
        pytest.param(9000, 1, ["8999"], id="the last of many"),
        pytest.param(9000, 8999, [str(n) for n in range(1, 9000)], id="over several pieces"),
        pytest.param(9000, 9000, [str(n) for n in range(9000)], id="all of many"),
    ],
)
def test_a_tail_begins_with_a_line(log: Path, count: int, asked: int, said: list[str]) -> None:
    write(log, lines(*(str(number) for number in range(count))))

    assert read_all(log, start=find_tail(log, asked)) == said


@pytest.mark.parametrize("size", [64, 65, 66, 67, 68, 69, 70])
def test_a_tail_is_found_wherever_pieces_meet(
    log: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PIECE_BYTES", size)
    write(log, lines(*("x" * (number % 7) for number in range(50))))

    for asked in range(50):
        assert len(read_all(log, start=find_tail(log, asked))) == asked


def test_a_tail_counts_only_whole_lines(log: Path) -> None:
    write(log, lines("a", "b", "c") + b"%d half" % STAMP)

    assert read_all(log, is_over=False, start=find_tail(log, 2)) == ["b", "c"]


def test_the_lengths_of_logs_are_known(log: Path, tmp_path: Path) -> None:
    write(log, b"12345")

    assert sizes_of([log, tmp_path / "none"]) == [5, 0]
