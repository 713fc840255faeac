"""The model of a hub that grows: its arithmetic, and that the guide says what it says."""

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.capacity_model import (
    COMMITS_WITH_NOTIFY,
    PLANS,
    STEP,
    Mix,
    Plan,
    arrivals,
    saturation,
    simulate,
    tables,
)

PAGE = Path("docs/scaling.md")
SMALL = PLANS[0]
LARGE = PLANS[-1]


def test_the_guide_has_the_tables_of_the_model() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for table in tables().strip().split("\n\n"):
        assert table in page


def test_a_day_has_as_many_events_as_were_asked_for_and_a_busy_hour() -> None:
    came = arrivals(1e7)

    assert came.sum() == pytest.approx(1e7, rel=0.01)
    assert came.max() > 3 * came.mean()


def test_twice_of_everything_holds_twice_as_much() -> None:
    twice = replace(
        SMALL,
        api_processes=2 * SMALL.api_processes,
        workers=2 * SMALL.workers,
        database_cores=2 * SMALL.database_cores,
        wal_bytes=2 * SMALL.wal_bytes,
        commits=2 * SMALL.commits,
    )

    assert saturation(twice)[0] / saturation(SMALL)[0] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "full"),
    [
        ({"api_processes": 10_000}, "commits"),
        ({"api_processes": 10_000, "commits": 1e9}, "database"),
        ({"api_processes": 10_000, "commits": 1e9, "database_cores": 1e6, "workers": 1}, "workers"),
        (
            {"api_processes": 10_000, "commits": 1e9, "database_cores": 1e6, "workers": 10_000},
            "log of the database",
        ),
    ],
    ids=["commits", "database", "workers", "log"],
)
def test_what_is_bought_less_of_is_full_first(changed: dict[str, float], full: str) -> None:
    plan = Plan(**{name: getattr(LARGE, name) for name in LARGE.__dataclass_fields__} | changed)  # type: ignore[arg-type]

    assert saturation(plan)[1] == full


def test_more_reads_need_more_of_the_api_and_no_more_workers() -> None:
    few, many = (simulate(LARGE, 1e8, Mix(reads=reads)).busy for reads in (1, 50))

    assert many["API"] > 3 * few["API"]
    assert many["workers"] == few["workers"]


def test_with_a_notify_in_every_commit_the_largest_day_does_not_fit() -> None:
    as_before = simulate(replace(LARGE, commits=COMMITS_WITH_NOTIFY), 1e8)

    assert simulate(LARGE, 1e8).holds
    assert not as_before.holds
    assert max(as_before.waited) > 3600


def test_what_waits_is_worked_off_when_less_comes() -> None:
    waited = simulate(replace(SMALL, workers=1), 1.75e6).waited

    assert max(waited) > STEP
    assert waited[-1] == 0
