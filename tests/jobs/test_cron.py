"""When a schedule is due."""

from datetime import UTC, datetime

import pytest

from hublet.core.errors import InvalidRequest
from hublet.jobs.schedules.records import describe_schedule, next_after, next_runs

# A Sunday.
MOMENT = datetime(2026, 11, 15, 12, 30, 15, 500, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        pytest.param("* * * * *", "2026-11-15T12:31", id="every minute is the next whole one"),
        pytest.param("*/20 * * * *", "2026-11-15T12:40", id="steps begin with the hour"),
        pytest.param("30 12 * * *", "2026-11-16T12:30", id="this minute has begun already"),
        pytest.param("0 9 * * 1", "2026-11-16T09:00", id="a day of the week"),
        pytest.param("0 9 * * 0", "2026-11-22T09:00", id="Sunday is 0"),
        pytest.param("0 9 * * 7", "2026-11-22T09:00", id="and 7 as well"),
        pytest.param("0 9 * * mon-wed", "2026-11-16T09:00", id="names of days"),
        pytest.param("0 0 1 JAN,feb *", "2027-01-01T00:00", id="names of months"),
        pytest.param("0 0 1 * 2", "2026-11-17T00:00", id="either of two days, as cron has it"),
        pytest.param("0 0 29 2 *", "2028-02-29T00:00", id="a day that not every year has"),
        pytest.param("  0 0 * * *  ", "2026-11-16T00:00", id="blanks around it"),
        pytest.param("@hourly", "2026-11-15T13:00", id="@hourly"),
        pytest.param("@daily", "2026-11-16T00:00", id="@daily"),
        pytest.param("@midnight", "2026-11-16T00:00", id="@midnight"),
        pytest.param("@weekly", "2026-11-22T00:00", id="@weekly"),
        pytest.param("@monthly", "2026-12-01T00:00", id="@monthly"),
        pytest.param("@yearly", "2027-01-01T00:00", id="@yearly"),
        pytest.param("@annually", "2027-01-01T00:00", id="@annually"),
        pytest.param(" @Daily", "2026-11-16T00:00", id="in any letters"),
    ],
)
def test_the_next_time_is_the_first_after_the_moment(schedule: str, due: str) -> None:
    assert next_after(schedule, MOMENT) == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_a_time_that_is_due_is_not_its_own_next() -> None:
    due = next_after("@hourly", MOMENT)

    assert next_after("@hourly", due) == datetime(2026, 11, 15, 14, 0, tzinfo=UTC)


RULE = (
    "schedule must have the five fields of cron, in UTC, or be one of @annually, @yearly, "
    "@monthly, @weekly, @daily, @midnight and @hourly"
)


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        pytest.param("", f"{RULE}.", id="nothing"),
        pytest.param("daily", f"{RULE}.", id="a word"),
        pytest.param("@reboot", f"{RULE}.", id="a name that is no time"),
        pytest.param("* * * *", f"{RULE}.", id="four fields"),
        pytest.param("* * * * * *", f"{RULE}.", id="six fields would be seconds"),
        pytest.param("60 * * * *", f"{RULE} (bad minute).", id="no such minute"),
        pytest.param("* 24 * * *", f"{RULE} (bad hour).", id="no such hour"),
        pytest.param("* * 32 * *", f"{RULE} (bad day-of-month).", id="no such day"),
        pytest.param("* * * 13 *", f"{RULE} (bad month).", id="no such month"),
        pytest.param("* * * * 8", f"{RULE} (bad day-of-week).", id="no such day of a week"),
        pytest.param("*/0 * * * *", f"{RULE} (bad minute).", id="a step of nothing"),
        pytest.param("5-1 * * * *", f"{RULE} (bad minute).", id="a range that goes back"),
        pytest.param("-1 * * * *", f"{RULE} (bad minute).", id="a sign"),
        pytest.param("\u0661 * * * *", f"{RULE} (bad minute).", id="digits of another script"),
        pytest.param("* * * * 1#2/2", f"{RULE} (bad day-of-week).", id="a step of a second Monday"),
        pytest.param("0 0 31 2 *", f"{RULE} (bad day-of-month).", id="the 31st of February"),
        pytest.param("0 0 * 4 1#6", f"{RULE} (bad day-of-week).", id="a sixth Monday"),
        pytest.param(
            "0 0 30 2 */8", f"{RULE} (bad day-of-month).", id="never, however the day is written"
        ),
        pytest.param(
            "0 0 LW * */6",
            "schedule names a time that never comes.",
            id="a weekday at the end of a week",
        ),
    ],
)
def test_what_is_no_schedule(schedule: str, sentence: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        next_after(schedule, MOMENT)

    assert refused.value.message == sentence


def test_a_schedule_has_words_and_further_times() -> None:
    assert describe_schedule("@weekly") == "At 00:00 on Sunday"
    assert [each.day for each in next_runs("0 9 * * mon,fri", MOMENT, count=3)] == [16, 20, 23]
    # The words of what nobody can read are a refusal too.
    with pytest.raises(InvalidRequest):
        describe_schedule("often")
