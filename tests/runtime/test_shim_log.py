"""The log as the shim writes it: lines with their time, whole, in pieces, up to a limit."""

import os
import time
from pathlib import Path

import pytest

from hublet.runtime.shim.log import PIECE, Log


def written(path: Path, *chunks: bytes, limit: int = 10**9) -> list[str]:
    """Add chunks as they would be read from a pipe; return the lines without their times."""
    log = Log(str(path), limit=limit, offset=0)
    for chunk in chunks:
        log.add(chunk)
    log.close()
    os.close(log.fd)
    lines = path.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    assert all(line.partition(" ")[0].isdigit() for line in lines)
    return [line.partition(" ")[2] for line in lines]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([b"a\n"], ["a"], id="one line"),
        pytest.param([b"a\nb\n"], ["a", "b"], id="two lines at once"),
        pytest.param([b"a", b"b\nc", b"\n"], ["ab", "c"], id="lines that come in parts"),
        pytest.param([b"a\n", b"b"], ["a", "b"], id="a last line without an end"),
        pytest.param([b"\n\n"], ["", ""], id="empty lines"),
        pytest.param([b"a\r\nb\r", b"\nc\rd\n"], ["a", "b", "c\rd"], id="ends of another system"),
        pytest.param([b"\xc3", b"\xa9\n"], ["é"], id="a character that comes in parts"),
        pytest.param([b"\xff\n", b"ok\n"], ["\ufffd", "ok"], id="a byte that is no text"),
        pytest.param([b"\xe2\x82"], ["\ufffd"], id="a character that never ends"),
        pytest.param([b"x" * PIECE + b"\n"], ["x" * PIECE], id="a line just as long as allowed"),
        pytest.param([b"x" * PIECE + b"yz\na\n"], ["x" * PIECE, "yz", "a"], id="a longer one"),
        pytest.param([b"x" * PIECE, b"y"], ["x" * PIECE, "y"], id="a long one without an end"),
        pytest.param(
            [b"x" * (PIECE - 1) + "é".encode() + b"z\n"],
            ["x" * (PIECE - 1), "éz"],
            id="a character where it would be cut",
        ),
        pytest.param(
            [b"\x80" * (PIECE + 10) + b"\n"],
            ["\ufffd" * (PIECE - 3), "\ufffd" * 13],
            id="no character in sight where it would be cut",
        ),
    ],
)
def test_output_becomes_lines(tmp_path: Path, chunks: list[bytes], lines: list[str]) -> None:
    assert written(tmp_path / "log", *chunks) == lines


def test_what_was_cut_off_by_a_kill_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1 whole\n2 hal")
    assert written(path, b"new\n") == ["whole", "hal", "new"]


def test_a_full_log_says_so_once_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "log"
    notice = "===== The log is full (100 bytes): what comes later is not kept ====="
    # Each line takes 16 digits, a space, the text and the end.
    lines = ["aaaa", "bbbb", "cccc", "dddd", notice]
    chunks = [b"aaaa\nbbbb\n", b"cccc\ndddd\neeee\nffff\n", b"gggg\n"]
    assert written(path, *chunks, limit=100) == lines
    assert written(path, b"hhhh\n", limit=100) == lines


def test_a_clock_that_is_set_back_does_not_turn_lines_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([5_000_000, 3_000_000, 9_000_000])
    path = tmp_path / "log"
    log = Log(str(path), limit=10**6, offset=7)
    with monkeypatch.context() as clock:
        clock.setattr(time, "time_ns", lambda: next(times))
        for text in (b"a\n", b"b\n", b"c\n"):
            log.add(text)
    os.close(log.fd)
    assert path.read_text() == "5007 a\n5007 b\n9007 c\n"


def test_a_full_disk_loses_lines_but_never_half_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    log = Log(str(path), limit=10**6, offset=0)
    log.add(b"before\n")
    write = os.write
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", lambda fd, data: write(fd, data[:5]))
        log.add(b"lost\n")
    log.add(b"after\n")
    os.close(log.fd)
    texts = [line.partition(" ")[2] for line in path.read_text().splitlines()]
    assert texts == ["before", "after"]
