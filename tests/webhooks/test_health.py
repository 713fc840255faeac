"""What attempts say about a target."""

from dataclasses import replace

import pytest

from hublet.webhooks.delivery.health import (
    Health,
    Judgement,
    after_failure,
    after_success,
    after_waiting,
    probe_delay,
)

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
T = 1000 * DAY

# Failing for five days, ten given up, twelve hours between the first and the last of them.
HOPELESS = Health(
    failures=40,
    failing_since=T - 5 * DAY,
    degraded_since=T - 5 * DAY,
    probes=30,
    exhausted=10,
    first_exhausted_at=T - 12 * HOUR,
    last_exhausted_at=T,
    notified_percent=90,
)


def failed(health: Health, *, now: int = T, times: int = 1) -> Judgement:
    judgement = Judgement(health=health)
    for _ in range(times):
        judgement = after_failure(judgement.health, started_at=now - SECOND, now=now)
    return judgement


def test_a_success_forgets_every_failure() -> None:
    assert after_success(HOPELESS, now=T) == Judgement(
        health=Health(last_success_at=T), recovers=True
    )


def test_a_success_after_failures_that_nobody_was_notified_of_is_no_recovery() -> None:
    before = failed(Health(), times=3).health
    assert after_success(before, now=T) == Judgement(health=Health(last_success_at=T))


def test_three_failures_in_a_row_are_not_yet_a_pattern() -> None:
    assert failed(Health(last_success_at=T - DAY), times=3) == Judgement(
        health=Health(last_success_at=T - DAY, failures=3, failing_since=T)
    )


def test_the_fourth_failure_in_a_row_degrades_the_target_and_notifies_the_owner() -> None:
    assert failed(Health(), times=4) == Judgement(
        health=Health(failures=4, failing_since=T, degraded_since=T, notified_percent=0), notify=0
    )


def test_the_owner_is_notified_once() -> None:
    fifth = failed(failed(Health(), times=4).health)
    assert fifth.notify is None
    assert fifth.health.failures == 5


def test_what_was_on_its_way_when_the_target_became_degraded_is_no_probe() -> None:
    degraded = failed(Health(), times=4).health
    late = after_failure(degraded, started_at=T - SECOND, now=T + SECOND)
    probe = after_failure(degraded, started_at=T, now=T + SECOND)
    assert (late.health.probes, probe.health.probes) == (0, 1)


@pytest.mark.parametrize(
    ("probes", "seconds"),
    [(0, 60), (1, 120), (2, 240), (5, 1920), (6, 3600), (7, 3600), (500, 3600)],
)
def test_probes_come_ever_more_rarely(probes: int, seconds: int) -> None:
    assert probe_delay(probes) == seconds * SECOND


@pytest.mark.parametrize(
    ("days", "notified", "notify"),
    [
        pytest.param(1, None, 0, id="the first day"),
        pytest.param(1, 0, None, id="the first day, notified"),
        pytest.param(2.49, 0, None, id="before the middle"),
        pytest.param(2.5, 0, 50, id="the middle"),
        pytest.param(3, 50, None, id="after the middle, notified"),
        pytest.param(4.5, 50, 90, id="shortly before the end"),
        pytest.param(4.5, None, 90, id="only the newest step is notified"),
        pytest.param(4.9, 90, None, id="shortly before the end, notified"),
        pytest.param(30, 90, None, id="over time without enough given up"),
    ],
)
def test_the_owner_is_notified_on_the_way(
    days: float, notified: int | None, notify: int | None
) -> None:
    since = T - round(days * DAY)
    health = Health(
        failures=9, failing_since=since, degraded_since=since, notified_percent=notified
    )
    assert failed(health).notify == notify
    assert failed(health).health.notified_percent == (notified if notify is None else notify)


@pytest.mark.parametrize(
    ("change", "suspends"),
    [
        pytest.param({}, True, id="all three conditions hold"),
        pytest.param({"failing_since": T - 5 * DAY + 1}, False, id="not five days yet"),
        pytest.param({"exhausted": 9}, False, id="not ten given up"),
        pytest.param(
            {"first_exhausted_at": T - 12 * HOUR + 1}, False, id="all in one window of 12 hours"
        ),
        pytest.param(
            {"exhausted": 10_000, "first_exhausted_at": T}, False, id="however many at once"
        ),
        pytest.param({"notified_percent": None}, True, id="also when the owner was not notified"),
    ],
)
def test_a_target_is_suspended_after_five_days(change: dict[str, int], suspends: bool) -> None:  # noqa: FBT001 - a table.
    judgement = failed(replace(HOPELESS, **change))
    assert judgement.suspends is suspends


def test_the_last_failure_itself_counts_as_given_up() -> None:
    nearly = replace(HOPELESS, exhausted=9, last_exhausted_at=T - HOUR)
    judgement = after_failure(nearly, started_at=T, now=T, exhausted=True)
    assert judgement.suspends
    assert (judgement.health.exhausted, judgement.health.last_exhausted_at) == (10, T)


def test_one_who_is_gone_for_good_is_suspended_at_once() -> None:
    judgement = after_failure(Health(), started_at=T, now=T, gone=True)
    assert judgement == Judgement(health=Health(failures=1, failing_since=T), suspends=True)


def test_what_waited_too_long_counts_as_given_up() -> None:
    degraded = replace(HOPELESS, exhausted=0, first_exhausted_at=None, last_exhausted_at=None)
    first = after_waiting(degraded, given_up=9, now=T)
    assert first == Judgement(
        health=replace(degraded, exhausted=9, first_exhausted_at=T, last_exhausted_at=T)
    )
    assert after_waiting(first.health, given_up=1, now=T + 12 * HOUR).suspends
    assert not after_waiting(first.health, given_up=1, now=T + 12 * HOUR - 1).suspends


def test_a_clock_that_was_turned_back_counts_against_nobody() -> None:
    early = failed(failed(Health(), times=4).health, now=T - 30 * DAY)
    assert (early.notify, early.suspends) == (None, False)


@pytest.mark.parametrize(
    ("health", "is_clean"),
    [
        pytest.param(Health(), True, id="unknown"),
        pytest.param(Health(last_success_at=T), True, id="well"),
        pytest.param(Health(failures=1, failing_since=T), False, id="one failure"),
        pytest.param(Health(notified_percent=0), False, id="the owner was notified"),
        pytest.param(Health(exhausted=1), False, id="one given up"),
    ],
)
def test_only_a_target_without_failures_is_clean(health: Health, is_clean: bool) -> None:  # noqa: FBT001 - a table.
    assert health.is_clean is is_clean
