"""Health of a target, judged from its attempts: well, degraded, suspended; without I/O."""

from dataclasses import replace

from hublet.core.dataclasses import dataclass
from hublet.webhooks.delivery.backoff import SECOND

# After so many failures in a row the target is only probed until it answers.
DEGRADED_AFTER = 4
_FIRST_PROBE = 60 * SECOND
_LONGEST_PROBE = 3600 * SECOND

SUSPENDED_AFTER = 5 * 86_400 * SECOND
_LEAST_EXHAUSTED = 10
# A single outage must not count: the deliveries that were given up are at least so far apart.
_APART = 12 * 3600 * SECOND
# Percent of that time, the largest first.
_STEPS = (90, 50, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health of one target; times in microseconds."""

    last_success_at: int | None = None
    # Failed attempts in a row, since when, and since when it is only probed.
    failures: int = 0
    failing_since: int | None = None
    degraded_since: int | None = None
    probes: int = 0
    # Deliveries given up since the last success.
    exhausted: int = 0
    first_exhausted_at: int | None = None
    last_exhausted_at: int | None = None
    # The percentage that the owner was last notified of; None: not notified yet.
    notified_percent: int | None = None

    @property
    def is_clean(self) -> bool:
        return self.failing_since is None and self.exhausted == 0 and self.notified_percent is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A target's health after an outcome, and what follows from it."""

    health: Health
    # The percentage to notify the owner of now.
    notify: int | None = None
    suspends: bool = False
    recovers: bool = False


def probe_delay(probes: int) -> int:
    """Return the wait before the next probe of a degraded target."""
    return min(_FIRST_PROBE << min(probes, 10), _LONGEST_PROBE)


def after_success(health: Health, *, now: int) -> Judgement:
    return Judgement(
        health=Health(last_success_at=now), recovers=health.notified_percent is not None
    )


def after_failure(
    health: Health, *, started_at: int, now: int, exhausted: bool = False, gone: bool = False
) -> Judgement:
    """Count a failed attempt; `exhausted` says that its delivery was given up with it."""
    failures = health.failures + 1
    degraded_since = health.degraded_since
    # An attempt that was in flight when the target became degraded is no probe.
    probed = degraded_since is not None and started_at >= degraded_since
    if degraded_since is None and failures >= DEGRADED_AFTER:
        degraded_since = now
    after = replace(
        health,
        failures=failures,
        failing_since=now if health.failing_since is None else health.failing_since,
        degraded_since=degraded_since,
        probes=health.probes + probed,
    )
    return _judge(_exhaust(after, exhausted, now), now=now, gone=gone)


def after_waiting(health: Health, *, given_up: int, now: int) -> Judgement:
    """Count deliveries that were given up because their target was degraded for too long."""
    return _judge(_exhaust(health, given_up, now), now=now)


def _exhaust(health: Health, count: int, now: int) -> Health:
    if not count:
        return health
    first = now if health.first_exhausted_at is None else health.first_exhausted_at
    return replace(
        health,
        exhausted=health.exhausted + count,
        first_exhausted_at=first,
        last_exhausted_at=now,
    )


def _judge(health: Health, *, now: int, gone: bool = False) -> Judgement:
    # A clock that was turned back must not count against the target.
    failing_for = 0 if health.failing_since is None else max(0, now - health.failing_since)
    if gone or (failing_for >= SUSPENDED_AFTER and _is_hopeless(health)):
        return Judgement(health=health, suspends=True)
    if health.degraded_since is None:
        return Judgement(health=health)
    percent = next(step for step in _STEPS if failing_for * 100 >= SUSPENDED_AFTER * step)
    if health.notified_percent is not None and percent <= health.notified_percent:
        return Judgement(health=health)
    return Judgement(health=replace(health, notified_percent=percent), notify=percent)


def _is_hopeless(health: Health) -> bool:
    first, last = health.first_exhausted_at, health.last_exhausted_at
    if first is None or last is None:
        return False
    return health.exhausted >= _LEAST_EXHAUSTED and last - first >= _APART
