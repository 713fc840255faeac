"""What a job used, as it is kept beside its log."""

from pathlib import Path

import pytest

from hublet.core.clock import to_micros
from hublet.jobs.metrics import (
    PERIOD_SECONDS,
    SLOTS,
    UsageHistory,
    UsageLimits,
    append_sample,
    read_history,
)
from hublet.jobs.records import Usage

LIMITS = UsageLimits(cpu_millicores=2000, memory_bytes=4 * 2**30)
START = 1_700_000_000
USAGE = Usage(
    cpu_millicores=1500,
    memory_bytes=3 * 2**30,
    disk_per_second=12_345_678,
    received_per_second=0,
    sent_per_second=9,
    gpu_percent=93,
)


def keep(path: Path, *periods: int, usage: Usage = USAGE) -> None:
    for period in periods:
        moment = (START + period * PERIOD_SECONDS) * 1_000_000
        append_sample(path, usage, LIMITS, at=moment)


def kept(path: Path) -> UsageHistory:
    history = read_history(path)
    assert history is not None
    return history


def periods_of(history: UsageHistory) -> list[int]:
    return [
        (to_micros(sample.at) // 1_000_000 - START) // PERIOD_SECONDS for sample in history.samples
    ]


def test_a_sample_is_read_as_it_was_to_a_thousandth(tmp_path: Path) -> None:
    keep(tmp_path / "usage", 0)

    history = kept(tmp_path / "usage")

    assert history.limits == LIMITS
    [sample] = history.samples
    assert sample.usage.cpu_millicores == pytest.approx(1500, rel=1e-3)
    assert sample.usage.memory_bytes == pytest.approx(3 * 2**30, rel=1e-3)
    assert sample.usage.disk_per_second == pytest.approx(12_345_678, rel=1e-3)
    assert sample.usage.received_per_second == 0
    assert sample.usage.sent_per_second == 9
    assert sample.usage.gpu_percent == 93
    assert sample.at.timestamp() == START


def test_a_job_without_cards_has_no_usage_of_them(tmp_path: Path) -> None:
    keep(tmp_path / "usage", 0, usage=Usage(cpu_millicores=0, memory_bytes=0))

    [sample] = kept(tmp_path / "usage").samples

    assert sample.usage.gpu_percent is None


def test_what_was_missed_is_missing_and_what_comes_late_is_skipped(tmp_path: Path) -> None:
    keep(tmp_path / "usage", 0, 1, 5, 3, 5)

    assert periods_of(kept(tmp_path / "usage")) == [0, 1, 5]


def test_the_last_eight_hours_are_kept_in_64_kilobytes(tmp_path: Path) -> None:
    path = tmp_path / "usage"
    keep(path, *range(SLOTS))
    assert periods_of(kept(path)) == list(range(SLOTS))

    # The hub was away for a while, and the ring goes round.
    keep(path, SLOTS + 10)

    assert periods_of(kept(path)) == [*range(11, SLOTS), SLOTS + 10]
    assert path.stat().st_size <= 64_000

    keep(path, 3 * SLOTS)
    assert periods_of(kept(path)) == [3 * SLOTS]


@pytest.mark.parametrize("content", [b"", b"use1", b"\0" * 500, b"noise" * 100])
def test_a_spoiled_file_is_no_history(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "usage"
    path.write_bytes(content)
    assert read_history(path) is None

    keep(path, 0)
    assert periods_of(kept(path)) == [0]


def test_nothing_kept_is_no_history(tmp_path: Path) -> None:
    assert read_history(tmp_path / "usage") is None
