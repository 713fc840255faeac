from datetime import timedelta

import pytest

from hublet.cli.options import parse_duration
from hublet.core.clock import format_duration


@pytest.mark.parametrize(
    ("text", "length"),
    [
        pytest.param("90m", timedelta(minutes=90), id="minutes"),
        pytest.param("12h", timedelta(hours=12), id="hours"),
        pytest.param("30d", timedelta(days=30), id="days"),
        pytest.param("8w", timedelta(weeks=8), id="weeks"),
        pytest.param("36500d", timedelta(days=36_500), id="a century"),
        pytest.param("36501d", None, id="more than a century"),
        pytest.param("99999999w", None, id="more than a date can hold"),
        pytest.param("0d", None, id="nothing"),
        pytest.param("30", None, id="no unit"),
        pytest.param("d", None, id="no number"),
        pytest.param("-1d", None, id="the past"),
        pytest.param("1.5d", None, id="a fraction"),
        pytest.param("1 d", None, id="a blank inside"),
        pytest.param("1d\n", None, id="a line end"),
        pytest.param("٣d", None, id="digits of another script"),
        pytest.param("", None, id="empty"),
    ],
)
def test_a_length_is_read(text: str, length: timedelta | None) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    ("length", "words"),
    [
        pytest.param(timedelta(days=2, hours=5), "2 days", id="days"),
        pytest.param(timedelta(days=1), "1 day", id="one day"),
        pytest.param(timedelta(hours=23, minutes=59), "23 hours", id="nearly a day"),
        pytest.param(timedelta(minutes=1), "1 minute", id="one minute"),
        pytest.param(timedelta(seconds=59.9), "59 seconds", id="seconds"),
        pytest.param(timedelta(milliseconds=3), "less than a second", id="next to nothing"),
        pytest.param(timedelta(seconds=-5), "less than a second", id="less than nothing"),
    ],
)
def test_a_length_is_told_by_its_greatest_unit(length: timedelta, words: str) -> None:
    assert format_duration(length) == words
