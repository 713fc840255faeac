"""Health of a webhook in words: what is the matter, and what to do about it."""

from hublet.core.clock import from_micros
from hublet.core.dataclasses import dataclass
from hublet.core.pages import age_of, plural
from hublet.webhooks.activity.records import HealthState, WebhookHealth
from hublet.webhooks.records import Attempt

_DENIED = {401, 403}
_TONES = {
    HealthState.well: ("Well", "ok"),
    HealthState.degraded: ("Degraded", "warn"),
    HealthState.suspended: ("Suspended", "bad"),
    HealthState.paused: ("Paused", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthWords:
    """Health of a webhook in words: what is the matter, and what to do about it."""

    name: str
    tone: str
    reason: str
    advice: str = ""


def describe_health(
    health: WebhookHealth, *, last: Attempt | None = None, throttled: bool = False
) -> HealthWords:
    """Say how a webhook fares; `last` is its last attempt, if there was one."""
    name, tone = _TONES[health.state]
    reason, advice = _REASONS[health.state](health)
    # A test that failed says nothing of a target whose deliveries arrive.
    is_failing = advice or health.target.failures
    if last is not None and last.detail and is_failing and health.state is not HealthState.paused:
        reason = f"{reason} {last.detail}".strip()
    if advice and last is not None and last.status in _DENIED:
        advice = f"Compare the secret here and there, or set a new one. {advice}"
    if throttled:
        reason = f"{reason} Its daily limit is reached: what comes now is kept, not sent.".strip()
    return HealthWords(name=name, tone=tone, reason=reason, advice=advice)


def _well(health: WebhookHealth) -> tuple[str, str]:
    failures, newest = health.target.failures, health.newest
    if failures:
        failed = (
            "The last attempt failed" if failures == 1 else f"The last {failures} attempts failed"
        )
        return f"{failed}; it is tried again.", ""
    return ("" if newest else "Nothing was delivered yet."), ""


def _degraded(health: WebhookHealth) -> tuple[str, str]:
    target = health.target
    since = "" if target.failing_since is None else f", the first {_age(target.failing_since)}"
    probe = (
        "" if health.next_attempt_at is None else f", the next time {_age(health.next_attempt_at)}"
    )
    failed = f"The last {plural(target.failures, 'attempt')} failed{since}."
    return (
        f"{failed} Its target is only probed{probe}, and what comes meanwhile waits.",
        "Mend the receiver: the first success lets everything go that waits.",
    )


def _suspended(health: WebhookHealth) -> tuple[str, str]:
    given_up = plural(health.target.exhausted, "delivery was", "deliveries were")
    return (
        f"It failed until it was switched off; {given_up} given up. What comes now is kept, not sent.",
        "Mend the receiver and test it, then resume and recover what failed.",
    )


def _paused(_health: WebhookHealth) -> tuple[str, str]:
    return (
        "Somebody paused it. What it matches now is kept, not sent.",
        "Resume it, then recover what was missed.",
    )


_REASONS = {
    HealthState.well: _well,
    HealthState.degraded: _degraded,
    HealthState.suspended: _suspended,
    HealthState.paused: _paused,
}


def _age(moment: int) -> str:
    return age_of(from_micros(moment))
