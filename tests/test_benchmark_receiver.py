"""The benchmark of the receiving server: both libraries do the same, and the rows say what is what."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.figures import Spoiled
from benchmarks.peers import receiving
from benchmarks.processes import free_port, running
from benchmarks.rounds import Round
from benchmarks.subjects import SUBJECTS, receiver
from benchmarks.workbench import Workbench, workbench


@pytest.fixture
def bench() -> Iterator[Workbench]:
    with workbench(seconds=0.2, rounds=1) as bench:
        yield bench


def test_the_subject_can_be_asked_for() -> None:
    assert SUBJECTS["receiver"] is receiver.measure


def test_ours_receives_what_the_benchmark_sends(bench: Workbench) -> None:
    port = free_port()
    arguments = [str(receiver.PYTHONS[receiver.OURS]), receiving.__file__, receiver.OURS, str(port)]
    with running(arguments, output=bench.folder / "ours.log") as child:
        receiver.wait_until_it_receives(child, port)


def test_a_server_that_cannot_start_spoils_the_measurement(bench: Workbench) -> None:
    arguments = [str(receiver.PYTHONS[receiver.OURS]), receiving.__file__, "no_such_library", "0"]
    with (
        running(arguments, output=bench.folder / "none.log") as child,
        pytest.raises(Spoiled, match="answered None and said: ModuleNotFoundError: No module"),
    ):
        receiver.wait_until_it_receives(child, free_port())


def test_without_the_public_library_there_is_nothing_to_hold_it_against(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(receiver.PYTHONS, receiver.THEIRS, Path("nowhere"))

    with pytest.raises(Spoiled, match="The public library with gradio is not installed"):
        list(receiver.measure(bench))


def test_the_rows_hold_ours_against_theirs() -> None:
    rounds = {
        receiver.OURS: [Round(rate=800, cpu_micros=100, latencies={})],
        receiver.THEIRS: [Round(rate=100, cpu_micros=1000, latencies={})],
    }

    by_clock, by_processor = receiver.rows_of(rounds)

    assert (by_clock.ours, by_clock.other, by_clock.ratio) == (800, 100, 8)
    assert by_clock.verdict == "aim reached"
    assert (by_processor.ours, by_processor.other, by_processor.ratio) == (10_000, 1000, 10)
