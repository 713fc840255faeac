"""Transitions of a job, decided from an observation; without clock, database and runner."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hublet.core.clock import to_micros
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.jobs import hardware
from hublet.jobs.records import JobRecord, Observation, Phase, Stage
from hublet.jobs.stages import (
    UNCONFIRMED,
    AttemptEnd,
    StageChange,
    Trigger,
    late_message,
    reason_of,
    retry_delay,
    retry_message,
    silence_message,
    trigger_of_end,
)
from hublet.runtime.supervisor.records import AttemptRecord, HeldJob

STARTING = "starting"
# A runner stops an attempt at its deadline by itself; one that does not is asked to after this.
_OVERDUE_MARGIN = 2_000_000
_SECOND = 1_000_000

ENDED_PHASES = frozenset({Phase.exited, Phase.gone})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLimits:
    """Limits of the attempts of one job, in microseconds and bytes."""

    start: int
    timeout: int
    memory_bytes: int


def limits_of(job: JobRecord, settings: Settings) -> AttemptLimits:
    size = hardware.offered_flavors(settings).get(job.spec.flavor)
    return AttemptLimits(
        start=settings.jobs.start_seconds * _SECOND,
        timeout=(job.spec.timeout_seconds or settings.jobs.timeout_seconds) * _SECOND,
        memory_bytes=0 if size is None else size.memory_bytes,
    )


def decide_changes(
    held: HeldJob, seen: Observation, limits: AttemptLimits, *, at: int
) -> list[StageChange]:
    """Return the changes that an observation leads to, in this order; usually none."""
    attempt = held.attempt
    if attempt is None:
        return []
    if seen.phase in ENDED_PHASES:
        return _changes_when_ended(held.job, attempt, seen, limits, at=at)
    if seen.phase is Phase.running:
        return _changes_when_running(held.job, attempt, seen, at=at)
    if held.job.stage is Stage.scheduling and at >= attempt.launched_at + limits.start:
        reason = silence_message(seen) if seen.phase is Phase.unknown else seen.reason
        return [late_change(reason, limits, ending=AttemptEnd(ended_at=None, reason=reason))]
    if seen.phase is Phase.pending:
        return _message_change(held.job, seen.reason or STARTING)
    return _message_change(held.job, silence_message(seen))


def late_change(reason: str | None, limits: AttemptLimits, *, ending: AttemptEnd) -> StageChange:
    message = late_message(reason, seconds=limits.start // _SECOND)
    return StageChange(trigger=Trigger.late, message=message, ending=ending)


def _message_change(job: JobRecord, message: str | None) -> list[StageChange]:
    same = job.message == message
    return [] if same else [StageChange(trigger=Trigger.progress, message=message)]


def _changes_when_running(
    job: JobRecord, attempt: AttemptRecord, seen: Observation, *, at: int
) -> list[StageChange]:
    if job.stage is Stage.running:
        # The runner responds again: what was said of its silence goes.
        return _message_change(job, None)
    started_at = _clamp(attempt.launched_at, seen.started_at, at)
    return [StageChange(trigger=Trigger.started, message=None, started_at=started_at)]


def _changes_when_ended(
    job: JobRecord, attempt: AttemptRecord, seen: Observation, limits: AttemptLimits, *, at: int
) -> list[StageChange]:
    changes = list[StageChange]()
    if job.stage is Stage.scheduling and seen.started_at is not None:
        # It began and ended between two observations.
        changes = _changes_when_running(job, attempt, seen, at=at)
        attempt = replace(attempt, started_at=changes[0].started_at)
    begun = attempt.started_at if attempt.started_at is not None else attempt.launched_at
    ended_at = _clamp(begun, seen.ended_at, at)
    ran = 0 if attempt.started_at is None else ended_at - attempt.started_at
    trigger = trigger_of_end(
        seen,
        has_begun=attempt.started_at is not None,
        attempts_left=job.spec.attempts - job.attempt,
        is_overdue=ran >= limits.timeout,
    )
    reason = reason_of(seen, trigger, memory_bytes=limits.memory_bytes)
    ending = AttemptEnd(ended_at=ended_at, exit_code=seen.exit_code, reason=reason)
    return [*changes, _end_change(job, trigger, reason, ending=ending, ran=ran)]


def _end_change(
    job: JobRecord, trigger: Trigger, reason: str | None, *, ending: AttemptEnd, ran: int
) -> StageChange:
    cancel_at = job.cancel_requested_at
    # An attempt that ended before the cancellation ended as it did, but is not retried.
    if cancel_at is not None and (
        trigger is Trigger.failed or not _ended_before(cancel_at, ending)
    ):
        return StageChange(trigger=Trigger.canceled, message=None, ending=ending, ran=ran)
    if trigger is not Trigger.failed:
        return StageChange(trigger=trigger, message=reason, ending=ending, ran=ran)
    return StageChange(
        trigger=trigger,
        message=retry_message(attempt=job.attempt + 1, attempts=job.spec.attempts, reason=reason),
        wait=retry_delay(job.failure_count + 1),
        releases_lease=True,
        ending=ending,
        ran=ran,
    )


def add_loss(changes: list[StageChange], lost: Sequence[str]) -> list[StageChange]:
    """Return changes that say, where they end an attempt, which of its buckets were not written back."""
    ending = changes[-1].ending if changes else None
    if not lost or ending is None:
        return changes
    sentence = lost[0] if len(lost) == 1 else f"{lost[0]} The log names {len(lost) - 1} more."

    def joined(text: str | None) -> str:
        return f"{text}; {sentence}" if text else sentence

    message = joined(changes[-1].message)
    ending = replace(ending, reason=joined(ending.reason))
    return [*changes[:-1], replace(changes[-1], message=message, ending=ending)]


def _ended_before(moment: datetime, ending: AttemptEnd) -> bool:
    return ending.ended_at is not None and ending.ended_at < to_micros(moment)


def unconfirmed_cancel(attempt: AttemptRecord, *, at: int) -> StageChange:
    """Return the end of a canceled job whose runner did not confirm that the attempt ended."""
    return StageChange(
        trigger=Trigger.canceled,
        message=UNCONFIRMED,
        ending=AttemptEnd(ended_at=None, reason=UNCONFIRMED),
        ran=0 if attempt.started_at is None else max(0, at - attempt.started_at),
    )


def is_overdue(attempt: AttemptRecord, limits: AttemptLimits, *, at: int) -> bool:
    """Tell whether an attempt runs past its deadline although its runner should have stopped it."""
    started_at = attempt.started_at
    return started_at is not None and at >= started_at + limits.timeout + _OVERDUE_MARGIN


def _clamp(earliest: int, reported: datetime | None, latest: int) -> int:
    """Return a time as the runner reported it, if it can be right: its clock is not the hub's."""
    moment = latest if reported is None else to_micros(reported)
    return max(earliest, min(moment, latest))
