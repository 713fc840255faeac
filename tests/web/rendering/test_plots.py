"""Paths of plots."""

from datetime import UTC, datetime, timedelta

import pytest

from hublet.web.rendering.plots import Bar, Plot, Series, draw_bars, draw_plot, spark_paths


@pytest.mark.parametrize(
    ("values", "line"),
    [
        pytest.param([0, 5, 10], "M0 42L150 22L300 2", id="from zero to the greatest"),
        pytest.param([0, 0], "M0 42L300 42", id="nothing is a flat line at the bottom"),
        pytest.param([3], "M0 2L300 2", id="one value is a level line"),
        pytest.param([-4, 4], "M0 42L300 2", id="below zero there is no room"),
    ],
)
def test_a_line_goes_from_the_left_to_the_right(values: list[float], line: str) -> None:
    assert spark_paths(values) == (line, f"{line}L300 44L0 44Z")


def test_no_values_are_no_line() -> None:
    assert spark_paths([]) == ("", "")


NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def moments(*values: float, step: timedelta = timedelta(minutes=15)) -> Series:
    points = [(NOON + number * step, value) for number, value in enumerate(values)]
    return Series(label="Memory", points=points)


def plot(*values: float, limit: float | None = None) -> Plot:
    end = NOON + timedelta(hours=1)
    return draw_plot("Memory", [moments(*values)], start=NOON, end=end, limit=limit)


def test_a_plot_stands_on_zero_and_has_its_greatest_value_at_the_top() -> None:
    (line,) = plot(0, 5, 10).lines
    assert line.path == "M0 80L75 44L150 8"
    assert line.area == "M0 80L75 44L150 8L150 80L0 80Z"
    assert (line.last, line.highest) == ("10", "10")


def test_a_limit_is_a_line_that_the_scale_has_room_for() -> None:
    found = plot(0, 5, limit=20)
    assert (found.limit, found.limit_y) == ("20", 8)
    assert found.lines[0].path == "M0 80L75 62"
    assert found.label == "Memory: last 5, highest 5; limit 20"


def test_a_value_above_its_limit_stays_within_the_plot() -> None:
    found = plot(40, limit=20)
    assert found.limit_y == 44
    assert found.lines[0].path == "M0 8L0 8"


def test_of_many_values_the_peaks_stay() -> None:
    points = [(NOON + timedelta(seconds=second / 10), 1.0) for second in range(36_000)]
    points[12_345] = (points[12_345][0], 50.0)
    series = Series(label="Memory", points=points)
    found = draw_plot("Memory", [series], start=NOON, end=NOON + timedelta(hours=1))
    (line,) = found.lines
    assert line.path.count("L") < 240
    assert " 8L" in line.path
    assert line.highest == "50"


def test_a_line_is_cut_where_values_are_missing() -> None:
    step = timedelta(minutes=1)
    points = [(NOON + number * step, 1.0) for number in (*range(10), *range(50, 60))]
    found = draw_plot(
        "Memory",
        [Series(label="Memory", points=points)],
        start=NOON,
        end=NOON + timedelta(hours=1),
    )
    assert found.lines[0].path.count("M") == 2


def test_a_plot_without_values_says_so() -> None:
    assert plot().label == "Memory: no values"


def test_bars_stack_what_failed_on_what_went_well() -> None:
    bars = draw_bars(
        "24 hours",
        [
            Bar(start=NOON, ok=3, failed=1),
            Bar(start=NOON, ok=0, failed=0),
            Bar(start=NOON, ok=0, failed=1),
        ],
    )
    assert bars.ok_path == "M0 44v-30h75v30Z"
    assert bars.failed_path == "M0 14v-10h75v10ZM200 44v-10h75v10Z"
    assert bars.label == "24 hours: 3 ok, 2 failed"
