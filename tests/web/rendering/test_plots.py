"""Paths of small plots."""

import pytest

from hublet.web.rendering.plots import spark_paths


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
