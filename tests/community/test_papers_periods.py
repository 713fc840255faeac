"""The span of time of a day, a week or a month."""

import pytest

from hublet.community.errors import InvalidDay
from hublet.community.papers.service import span_of


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        pytest.param({"day": "2026-11-15"}, "2026-11-15", "2026-11-16", id="a day"),
        pytest.param({"day": "2024-02-29"}, "2024-02-29", "2024-03-01", id="a leap day"),
        pytest.param({"week": "2026-W46"}, "2026-11-09", "2026-11-16", id="Monday to Sunday"),
        pytest.param({"week": "2025-W01"}, "2024-12-30", "2025-01-06", id="week 1 of ISO 8601"),
        pytest.param({"month": "2024-02"}, "2024-02-01", "2024-03-01", id="a short month"),
        pytest.param({"month": "2026-12"}, "2026-12-01", "2027-01-01", id="a month at the end"),
        pytest.param({"day": "2999-12-31"}, "2999-12-31", "3000-01-01", id="the last day there is"),
    ],
)
def test_a_span_runs_from_midnight_to_midnight(given: dict[str, str], start: str, end: str) -> None:
    nothing: dict[str, str | None] = {"day": None, "week": None, "month": None}

    span = span_of(**nothing | given)

    assert span is not None
    assert [moment.isoformat() for moment in span] == [
        f"{start}T00:00:00+00:00",
        f"{end}T00:00:00+00:00",
    ]


def test_without_any_there_is_no_span() -> None:
    assert span_of(day=None, week=None, month=None) is None


DAY = "date must be a day such as 2026-11-15."
WEEK = "week must be a week such as 2026-W46."
MONTH = "month must be a month such as 2026-11."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({"day": "2025-02-29"}, DAY, id="a day that was not"),
        pytest.param({"day": "20260101"}, DAY, id="without hyphens"),
        pytest.param({"day": "2026-W46-1"}, DAY, id="a day of a week"),
        pytest.param({"day": "9999-12-31"}, DAY, id="a day too late"),
        pytest.param({"day": ""}, DAY, id="an empty day"),
        pytest.param({"day": "\uff12026-11-15"}, DAY, id="a digit of another script"),
        pytest.param({"week": "2025-W53"}, WEEK, id="a week that was not"),
        pytest.param({"week": "2026-46"}, WEEK, id="a week without W"),
        pytest.param({"month": "2026-13"}, MONTH, id="a month that is not"),
        pytest.param({"month": "2026"}, MONTH, id="a year"),
        pytest.param(
            {"day": "2026-11-15", "month": "2026-11"},
            "Give only one of date, week and month.",
            id="two at once",
        ),
    ],
)
def test_what_is_no_span_is_refused(given: dict[str, str], sentence: str) -> None:
    nothing: dict[str, str | None] = {"day": None, "week": None, "month": None}

    with pytest.raises(InvalidDay) as refused:
        span_of(**nothing | given)

    assert refused.value.message == sentence
