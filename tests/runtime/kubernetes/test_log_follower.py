"""Merging of a pod's log: what is told again, what is missing, and where a follower goes on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hublet.runtime.kubernetes.log_follower import LogMerger, follow, parse_line

A, B, C = (f"2026-11-17T10:00:00.{n}00000001Z" for n in (1, 2, 3))
SECOND = 1_794_909_600_000_000
GAP = "===== Lines may be missing here: the cluster did not keep them ====="
STARTED = datetime(2026, 11, 17, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        (b"2026-11-17T10:00:00.123456789Z a b", (SECOND + 123_456, b"a b")),
        (b"2026-11-17T10:00:01Z ", (SECOND + 1_000_000, b"")),
        (b"2026-11-17T10:00:00.5Z \xff", (SECOND + 500_000, b"\xff")),
        (b"unable to retrieve container logs for containerd://0", None),
    ],
)
def test_a_line_has_the_time_of_the_cluster(line: bytes, parsed: tuple[int, bytes] | None) -> None:
    assert parse_line(line) == parsed


def texts(merger: LogMerger, *lines: str) -> list[str]:
    merged = (merger.merge(line.encode(), arrived=SECOND) for line in lines)
    return [text.decode() for each in merged for _, text in each]


def gaps(*printed_and_arrived: tuple[int, int]) -> list[int]:
    """Return the lines, by the second in which they were printed, before which a gap is told."""
    merger = LogMerger()
    told = []
    for printed, arrived in printed_and_arrived:
        line = f"2026-11-17T10:00:{printed:02}Z x".encode()
        new = list(merger.merge(line, arrived=SECOND + arrived * 1_000_000))
        told += [printed] * (len(new) - 1)
    return told


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param([(1, 1), (2, 9), (30, 9)], [30], id="late, then not"),
        pytest.param([(1, 41), (2, 49), (30, 49)], [30], id="the same with clocks that differ"),
        pytest.param([(1, 1), (30, 30), (31, 31)], [], id="the job paused"),
        pytest.param([(1, 1), (2, 9), (30, 30)], [], id="it was late, then the job paused"),
        pytest.param([(1, 1), (2, 9), (3, 10), (4, 11)], [], id="it is late all the time"),
        pytest.param([(1, 50), (20, 50), (40, 50), (50, 51)], [], id="printed before it asked"),
    ],
)
def test_a_node_that_skips_what_it_was_late_with_makes_a_gap(
    lines: list[tuple[int, int]], told: list[int]
) -> None:
    assert gaps(*lines) == told


def test_after_a_break_only_what_is_new_is_taken() -> None:
    merger = LogMerger()
    assert texts(merger, f"{A} one", f"{B} two", f"{B} two") == ["one", "two", "two"]

    merger.reconnect()

    assert merger.since == "2026-11-17T10:00:00Z"
    told_again = [f"{A} one", f"{B} two", f"{B} two", f"{B} three", f"{C} four"]
    assert texts(merger, *told_again) == ["three", "four"]
    assert list(merger.finish()) == []


def test_a_last_line_that_is_not_told_again_is_a_gap() -> None:
    merger = LogMerger()
    texts(merger, f"{A} one")
    merger.reconnect()

    assert texts(merger, f"{C} three") == [GAP, "three"]


def test_a_log_that_was_forgotten_is_a_gap_even_if_nothing_follows() -> None:
    merger = LogMerger()
    texts(merger, f"{A} one")
    merger.reconnect()

    assert [text.decode() for _, text in merger.finish()] == [GAP]


def test_what_the_cluster_says_itself_is_marked() -> None:
    said = texts(LogMerger(), "unable to retrieve container logs for containerd://0")
    assert said == [
        "===== The cluster says: unable to retrieve container logs for containerd://0 ====="
    ]


@pytest.mark.parametrize(
    ("printed", "arrived", "is_told"),
    [
        pytest.param(1, 60, False, id="the log from its start"),
        pytest.param(40, 40, False, id="a job that was silent for long"),
        pytest.param(40, 60, True, id="what was before it may be rotated away"),
    ],
)
def test_a_first_line_that_comes_late_may_not_be_the_first(
    printed: int, arrived: int, *, is_told: bool
) -> None:
    merger = LogMerger(started=SECOND)
    line = f"2026-11-17T10:00:{printed:02}Z x".encode()

    merged = merger.merge(line, arrived=SECOND + arrived * 1_000_000)

    assert [text.decode() for _, text in merged] == ([GAP, "x"] if is_told else ["x"])


class Cluster:
    """A log that is told in parts; each part but the last ends with a broken connection."""

    # An odd number, so that pieces end anywhere.
    piece_length = 7

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)
        self.asked = list[tuple[str | None, bool]]()

    @asynccontextmanager
    async def open(
        self, *, since: str | None, is_followed: bool
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append((since, is_followed))
        part = self.parts.pop(0)

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(part), self.piece_length):
                yield part[start : start + self.piece_length]

        yield pieces()

    async def is_over(self) -> bool:
        return len(self.parts) == 1

    async def follow(self, folder: Path, *, limit: int = 10_000) -> list[str]:
        await follow(
            self.open,
            folder=folder / "attempt-1",
            log=folder / "log",
            limit=limit,
            started=STARTED,
            is_over=self.is_over,
        )
        lines = (folder / "log").read_text().splitlines()
        assert [int(line.partition(" ")[0]) for line in lines] == sorted(
            int(line.partition(" ")[0]) for line in lines
        )
        return [line.partition(" ")[2] for line in lines]


async def test_a_broken_log_is_taken_up_where_it_was_and_read_again_when_it_is_over(
    tmp_path: Path,
) -> None:
    one, two, three = f"{A} one\n".encode(), f"{B} two\n".encode(), f"{C} three".encode()
    cluster = Cluster(one + two[:-2], one + two, one + two + three)

    lines = await cluster.follow(tmp_path)

    assert lines == ["===== Job started at 2026-11-17T10:00:00.000Z =====", "one", "two", "three"]
    since = "2026-11-17T10:00:00Z"
    assert cluster.asked == [(None, True), (since, True), (since, False)]


async def test_another_process_goes_on_after_what_is_written(tmp_path: Path) -> None:
    one, two = f"{A} one\n".encode(), f"{B} two\n".encode()
    await Cluster(one).follow(tmp_path)

    lines = await Cluster(one + two).follow(tmp_path)

    assert lines[1:] == ["one", "two"]


async def test_lines_that_are_too_long_are_cut_once(tmp_path: Path) -> None:
    long = f"{A} {'x' * 70_000}\n".encode()
    await follow(
        Cluster(long).open,
        folder=tmp_path / "attempt-1",
        log=tmp_path / "log",
        limit=10**6,
        started=STARTED,
        is_over=Cluster(b"").is_over,
    )
    await follow(
        Cluster(long + f"{B} end\n".encode()).open,
        folder=tmp_path / "attempt-1",
        log=tmp_path / "log",
        limit=10**6,
        started=STARTED,
        is_over=Cluster(b"").is_over,
    )

    lines = (tmp_path / "log").read_text().splitlines()
    assert [len(line) for line in lines[1:]] == [65_536 + 17, 70_000 - 65_536 + 17, 3 + 17]


async def test_a_line_that_does_not_end_is_written_in_pieces_and_once(tmp_path: Path) -> None:
    text = "".join(str(number) for number in range(30_000))

    class Broken(Cluster):
        piece_length = 1001

        async def is_over(self) -> bool:
            if len(self.parts) == 1:
                assert len((tmp_path / "log").read_text().splitlines()) == 3
            return await super().is_over()

    cluster = Broken(f"{A} {text[:135_000]}".encode(), f"{A} {text}\n".encode())
    lines = await cluster.follow(tmp_path, limit=10**6)

    assert [len(line) for line in lines[1:]] == [65_536, 65_536, len(text) - 2 * 65_536]
    assert "".join(lines[1:]) == text
