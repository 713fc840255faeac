"""When a failed delivery is tried again."""

from datetime import UTC, datetime

import pytest

from hublet.webhooks.delivery.backoff import (
    LONGEST_RETRY_AFTER,
    SCHEDULE,
    SECOND,
    WHOLE_SCHEDULE,
    next_delay,
    read_retry_after,
)

HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("tries", "seconds"),
    [
        pytest.param(1, 5, id="the second attempt comes at once"),
        pytest.param(2, 30, id="the third after half a minute"),
        pytest.param(3, 300, id="then minutes"),
        pytest.param(4, 1800, id="half an hour"),
        pytest.param(5, 7200, id="two hours"),
        pytest.param(6, 18_000, id="five hours"),
        pytest.param(7, 36_000, id="ten hours"),
        pytest.param(8, 50_400, id="fourteen hours"),
        pytest.param(9, 72_000, id="twenty hours"),
        pytest.param(10, 86_400, id="a day before the last one"),
    ],
)
def test_waits_grow_with_tries(tries: int, seconds: int) -> None:
    assert next_delay(tries, chance=0.5) == seconds * SECOND


def test_gives_up_when_the_schedule_is_spent() -> None:
    assert next_delay(11, chance=0.5) is None
    assert next_delay(12, chance=0.5, retry_after=SECOND) is None


def test_the_schedule_takes_about_76_hours() -> None:
    assert len(SCHEDULE) == 11
    assert round(sum(SCHEDULE) / HOUR, 1) == 75.6
    assert round(WHOLE_SCHEDULE / HOUR, 1) == 90.7


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.8), (0.25, 0.9), (1.0, 1.2)])
def test_waits_are_spread_by_a_fifth_to_both_sides(chance: float, share: float) -> None:
    assert next_delay(3, chance=chance) == round(300 * share) * SECOND


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        pytest.param(600 * SECOND, 600, id="a longer wait than ours is granted"),
        pytest.param(SECOND, 300, id="a shorter one is not"),
        pytest.param(100 * HOUR, 86_400, id="more than a day is a day"),
    ],
)
def test_a_target_may_ask_for_a_longer_wait(retry_after: int, seconds: int) -> None:
    assert next_delay(3, chance=0.5, retry_after=retry_after) == seconds * SECOND


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        pytest.param("120", 120 * SECOND, id="seconds"),
        pytest.param(" 7 ", 7 * SECOND, id="with space around"),
        pytest.param("0", 0, id="none"),
        pytest.param("999999999999", LONGEST_RETRY_AFTER, id="too many seconds"),
        pytest.param("9" * 5000, LONGEST_RETRY_AFTER, id="a flood of digits"),
        pytest.param("Sun, 15 Nov 2026 08:10:00 GMT", 600 * SECOND, id="a date"),
        pytest.param("Sun, 15 Nov 2026 08:10:00", 600 * SECOND, id="a date without a zone"),
        pytest.param("Sun, 15 Nov 2026 07:00:00 GMT", 0, id="a date that is over"),
        pytest.param("Sun, 15 Nov 2099 07:00:00 GMT", LONGEST_RETRY_AFTER, id="a far date"),
        pytest.param(None, None, id="no header"),
        pytest.param("", None, id="an empty one"),
        pytest.param("-5", None, id="a negative number"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("soon", None, id="a word"),
        pytest.param("٣", None, id="a digit of another script"),
        pytest.param("Sun, 99 Nov 2026 99:00:00 GMT", None, id="no such date"),
    ],
)
def test_retry_after_is_read(value: str | None, micros: int | None) -> None:
    now = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
    assert read_retry_after(value, now=now) == micros
