from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.core import clock

NOON = datetime(2026, 11, 15, 12, 0, 0, 123_999, tzinfo=UTC)
FIRST_MICRO = clock.to_micros(datetime.min.replace(tzinfo=UTC))
LAST_MICRO = clock.to_micros(datetime.max.replace(tzinfo=UTC))


@pytest.fixture(autouse=True)
def _clock_as_it_was() -> Iterator[None]:
    before = clock.offset()
    yield
    clock.reset()
    clock.move(before)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000Z", id="the epoch"),
        pytest.param(999, "1970-01-01T00:00:00.000Z", id="less than a millisecond is cut"),
        pytest.param(1_999, "1970-01-01T00:00:00.001Z", id="microseconds are cut, not rounded"),
        pytest.param(-1, "1969-12-31T23:59:59.999Z", id="before the epoch"),
        pytest.param(1_794_707_096_123_456, "2026-11-15T01:44:56.123Z", id="an integer of micros"),
        pytest.param(NOON, "2026-11-15T12:00:00.123Z", id="a time in UTC"),
        pytest.param(
            NOON.astimezone(timezone(timedelta(hours=5, minutes=30))),
            "2026-11-15T12:00:00.123Z",
            id="a time of another zone is turned to UTC",
        ),
        pytest.param(
            datetime(987, 1, 1, tzinfo=UTC), "0987-01-01T00:00:00.000Z", id="the year has 4 digits"
        ),
    ],
)
def test_an_instant_on_the_wire(value: datetime | int, text: str) -> None:
    assert clock.wire(value) == text


@given(st.integers(FIRST_MICRO, LAST_MICRO))
def test_micros_survive_the_way_through_a_time(value: int) -> None:
    assert clock.to_micros(clock.from_micros(value)) == value


@given(st.integers(FIRST_MICRO, LAST_MICRO))
def test_both_forms_of_an_instant_read_the_same_on_the_wire(value: int) -> None:
    assert clock.wire(value) == clock.wire(clock.from_micros(value))


@given(st.integers(FIRST_MICRO, LAST_MICRO))
def test_the_wire_form_can_be_read_back(value: int) -> None:
    assert clock.to_micros(datetime.fromisoformat(clock.wire(value))) == value - value % 1000


def test_a_time_without_a_zone_is_refused() -> None:
    bare = NOON.replace(tzinfo=None)

    with pytest.raises(ValueError, match=r"^A time needs a time zone\.$"):
        clock.wire(bare)
    with pytest.raises(ValueError, match=r"^A time needs a time zone\.$"):
        clock.to_micros(bare)


def test_now_and_micros_tell_the_same_instant() -> None:
    before = clock.micros()
    between = clock.now()
    after = clock.micros()

    assert before <= clock.to_micros(between) <= after
    assert between.tzinfo is UTC


def test_the_clock_tells_the_real_time_until_it_is_moved() -> None:
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_moved_clock_moves_both_readings() -> None:
    by = timedelta(days=30, microseconds=7)
    now, micros = clock.now(), clock.micros()

    clock.move(by)

    assert by <= clock.now() - now < by + timedelta(seconds=5)
    assert by <= timedelta(microseconds=clock.micros() - micros) < by + timedelta(seconds=5)


def test_moves_add_up_and_may_go_back() -> None:
    clock.reset()

    clock.move(timedelta(hours=2))
    clock.move(timedelta(minutes=-30))

    assert clock.offset() == timedelta(hours=1, minutes=30)


def test_reset_takes_back_every_move() -> None:
    clock.move(timedelta(days=400))

    clock.reset()

    assert clock.offset() == timedelta()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert abs(clock.micros() - clock.to_micros(datetime.now(UTC))) < 5_000_000


def test_a_move_does_not_touch_durations() -> None:
    before = clock.monotonic()

    clock.move(timedelta(days=1))

    assert 0 <= clock.monotonic() - before < 60
