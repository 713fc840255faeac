"""The harness itself: what it computes, what it prints, and that it leaves nothing running."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from benchmarks import __main__ as command
from benchmarks.figures import Failure, Goal, Row, Spoiled, compare
from benchmarks.latencies import merged, percentile, percentile_of
from benchmarks.load import LoadPlan, Outcome, read_status, run
from benchmarks.processes import Child, cpu_seconds, free_port, running, wait_until_it_answers
from benchmarks.rounds import request_bytes
from benchmarks.subjects import SUBJECTS
from benchmarks.subjects.revoke import mann_whitney_auc
from benchmarks.subjects.start import import_millis
from benchmarks.table import number, render
from benchmarks.workbench import Workbench, workbench

RATIO = Goal(floor=0.5, aim=0.8, more_is_better=True, of="ratio")
MILLIS = Goal(floor=25, aim=10, more_is_better=False, of="ours")
ONLY_AN_AIM = Goal(aim=120, more_is_better=False, of="ours")


@pytest.mark.parametrize(
    ("goal", "figure", "verdict"),
    [
        pytest.param(RATIO, 0.49, "below floor", id="too small where more is better"),
        pytest.param(RATIO, 0.5, "floor reached", id="the floor itself counts"),
        pytest.param(RATIO, 0.8, "aim reached", id="the aim itself counts"),
        pytest.param(MILLIS, 25.1, "below floor", id="too long where less is better"),
        pytest.param(MILLIS, 25, "floor reached", id="short enough"),
        pytest.param(MILLIS, 9, "aim reached", id="shorter than hoped for"),
        pytest.param(ONLY_AN_AIM, 121, "aim missed", id="no floor to fall below"),
        pytest.param(ONLY_AN_AIM, 120, "aim reached", id="no floor, aim reached"),
    ],
)
def test_a_goal_judges_a_figure(goal: Goal, figure: float, verdict: str) -> None:
    assert goal.verdict(figure) == verdict


def test_the_ratio_is_the_median_over_the_rounds() -> None:
    # The third round was disturbed: the medians of both sides would give 100 / 300.
    row = compare(
        "whoami",
        ours=[100, 60, 300],
        other=[200, 300, 400],
        other_is="a ceiling",
        unit="/s",
        goal=RATIO,
    )

    assert row.ratios == (0.5, 0.2, 0.75)
    assert (row.ours, row.other, row.ratio) == (100, 300, 0.5)
    assert row.verdict == "floor reached, unsure"


def test_a_verdict_is_sure_when_every_round_agrees() -> None:
    row = compare("whoami", ours=[6, 7], other=[10, 10], other_is="", unit="/s", goal=RATIO)

    assert row.verdict == "floor reached"


def test_a_goal_of_ours_is_not_judged_by_the_ratio() -> None:
    row = compare("start", ours=[20], other=[10], other_is="bare", unit="ms", goal=MILLIS)

    assert row.verdict == "floor reached"


def test_a_table_shows_every_row_its_remarks_and_its_failures() -> None:
    row = compare(
        "whoami", ours=[1234, 1300], other=[2000, 2600], other_is="bare", unit="/s", goal=RATIO
    )
    alone = Row(subject="memory", unit="MB", ours=74.81, goal=ONLY_AN_AIM, note="75 at the most")

    assert render([row, alone, Failure(subject="cli", reason="No hf.")]).splitlines() == [
        "| subject | ours     | ceiling or peer | ratio (spread)   | floor | aim    | verdict       |",
        "| ------- | -------- | --------------- | ---------------- | ----- | ------ | ------------- |",
        "| whoami  | 1,267 /s | 2,300 /s        | 0.56 (0.50-0.62) | 0.50  | 0.80   | floor reached |",
        "| memory  | 74.8 MB  |                 |                  |       | 120 MB | aim reached   |",
        "| cli     |          |                 |                  |       |        | FAILED        |",
        "",
        "whoami: against bare",
        "memory: 75 at the most",
        "FAILED cli: No hf.",
    ]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        pytest.param(0.123, "0.12", id="a share"),
        pytest.param(12.34, "12.3", id="tens"),
        pytest.param(1234.5, "1,234", id="thousands"),
    ],
)
def test_a_figure_claims_no_more_than_was_measured(figure: float, text: str) -> None:
    assert number(figure) == text


def test_percentiles_are_the_upper_edge_of_their_step() -> None:
    counts = merged([{10: 98}, {10: 1, 500: 1}])

    assert percentile(counts, 0.5) == 0.11
    assert percentile(counts, 0.99) == 0.11
    assert percentile(counts, 1) == 5.01
    assert percentile_of([0.0001, 0.005], 1) == 5.01
    with pytest.raises(ValueError, match="Nothing was counted"):
        percentile({}, 0.5)


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nhello"


@pytest.mark.parametrize(
    ("received", "status"),
    [
        pytest.param(ANSWER, 200, id="whole"),
        pytest.param(ANSWER[:-1], None, id="the body is not there yet"),
        pytest.param(ANSWER[:30], None, id="the head is not there yet"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, id="without a body"),
        pytest.param(b"HTTP/1.1 429 Slow\r\ncontent-length:0\r\n\r\n", 429, id="a refusal"),
    ],
)
def test_an_answer_is_read_to_its_end(received: bytes, status: int | None) -> None:
    assert read_status(received) == status


def test_a_request_carries_its_body_and_its_length() -> None:
    assert request_bytes("POST", "/x", headers={"a": "b"}, body=b"{}") == (
        b"POST /x HTTP/1.1\r\nhost: hub.test\r\nuser-agent: benchmarks\r\naccept: */*\r\na: b\r\n"
        b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    )


class _Answering(asyncio.Protocol):
    """Gives the same answer to whatever comes; hangs up after so many."""

    def __init__(self, answer: bytes, times: int | None) -> None:
        self._answer = answer
        self._left = times

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._answer)
        if self._left is not None:
            self._left -= 1
            if not self._left:
                self._transport.close()


@asynccontextmanager
async def answering(answer: bytes, *, times: int | None = None) -> AsyncIterator[int]:
    """Yield the port of a server that knows this answer only."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Answering(answer, times), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def load_on(port: int, *, most: int, connections: int = 4) -> Outcome:
    request = request_bytes("GET", "/")
    return await run(
        LoadPlan(port=port, request=request, connections=connections, seconds=30, most=most)
    )


async def test_a_load_stops_after_so_many_good_answers() -> None:
    async with answering(ANSWER) as port:
        outcome = await load_on(port, most=100)

    assert (outcome.answers, outcome.refused, outcome.lost) == (100, {}, 0)
    assert sum(outcome.latencies.values()) == 100
    assert outcome.rate == 100 / outcome.seconds


async def test_a_load_ends_with_its_time_and_counts_refusals_apart() -> None:
    async with answering(b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n") as port:
        request = request_bytes("GET", "/")
        outcome = await run(LoadPlan(port=port, request=request, connections=1, seconds=0.05))

    assert outcome.answers == 0
    assert set(outcome.refused) == {429}
    assert outcome.latencies == {}


async def test_a_load_counts_the_connections_it_loses() -> None:
    async with answering(ANSWER, times=3) as port:
        request = request_bytes("GET", "/")
        outcome = await run(LoadPlan(port=port, request=request, connections=2, seconds=0.3))

    assert (outcome.answers, outcome.lost) == (6, 2)


def test_imports_add_up_by_package() -> None:
    report = [
        "import time: self [us] | cumulative | imported package",
        "import time:       100 |        100 |   fastapi.params",
        "import time:      1900 |       2000 | fastapi",
        "import time:       500 |        500 | typer",
    ]

    assert import_millis(report) == {"fastapi": 2.0, "typer": 0.5}


def test_a_child_is_ended_when_the_run_is_interrupted(tmp_path: Path) -> None:
    children: list[Child] = []

    def interrupted_run() -> None:
        sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
        with running(sleep, output=tmp_path / "log") as child:
            children.append(child)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_run()

    assert [child.process.returncode for child in children] == [-signal.SIGTERM]


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    fails = [sys.executable, "-c", "raise SystemExit('The port is taken.')"]

    with (
        running(fails, output=tmp_path / "log") as child,
        pytest.raises(Spoiled, match="ended before it answered and said: The port is taken"),
    ):
        wait_until_it_answers(child, free_port(), "/healthz")


def test_processor_time_is_that_of_the_process() -> None:
    before = cpu_seconds(os.getpid())
    sum(range(5_000_000))

    assert cpu_seconds(os.getpid()) > before


def test_every_subject_says_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--list"])

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SUBJECTS)
    assert all(line.endswith(".") for line in lines)


def test_a_subject_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["whoami", "nonsense"])

    assert "nonsense is none of whoami, bearer, start" in capsys.readouterr().err


def test_a_spoiled_subject_is_told_and_the_next_one_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def spoiled(_bench: Workbench) -> Iterator[Row]:
        yield Row(subject="before", unit="s", ours=1)
        raise Spoiled("It answered 500.")

    def good(_bench: Workbench) -> Iterator[Row]:
        yield Row(subject="after", unit="s", ours=2)

    monkeypatch.setattr(command, "SUBJECTS", {"spoiled": spoiled, "good": good})
    with workbench(seconds=1, rounds=1) as bench:
        command.report(bench, ["spoiled", "good"], into=tmp_path / "figures.json")

    printed = capsys.readouterr().out
    assert "| spoiled |" in printed
    assert "FAILED spoiled: It answered 500." in printed
    assert "| after   | 2.00 s |" in printed
    assert '"reason": "It answered 500."' in (tmp_path / "figures.json").read_text()


@pytest.mark.parametrize(
    ("longer", "shorter", "auc"),
    [
        pytest.param([3, 4], [1, 2], 1.0, id="always longer"),
        pytest.param([1, 2], [3, 4], 0.0, id="always shorter"),
        pytest.param([1, 4], [2, 3], 0.5, id="as often longer as shorter"),
        pytest.param([5], [5], 0.5, id="a tie"),
    ],
)
def test_the_auc_counts_pairs(longer: list[float], shorter: list[float], auc: float) -> None:
    assert mann_whitney_auc(longer=longer, shorter=shorter) == auc
