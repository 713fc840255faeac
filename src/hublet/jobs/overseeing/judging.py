"""What an observation means for a job: no clock, no database, no runner."""

from dataclasses import replace
from datetime import datetime

from hublet.core.clock import to_micros
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.overseeing.records import Attempt, Change, Ending, Held
from hublet.jobs.records import Job, Stage
from hublet.jobs.runners.records import Observation, Phase
from hublet.jobs.stages import (
    UNCONFIRMED,
    Trigger,
    back_off,
    late_message,
    reason_of,
    retry_message,
    silence,
    trigger_of_end,
)

STARTING = "starting"
# A runner keeps the deadline itself; only one that does not is helped, after this long.
_OVERDUE_MARGIN = 2_000_000

ENDED = frozenset({Phase.exited, Phase.gone})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What counts for one job, in microseconds and bytes."""

    start: int
    timeout: int
    memory_bytes: int


def judge(held: Held, seen: Observation, limits: Limits, *, at: int) -> list[Change]:
    """Return what is to change, in this order; usually nothing."""
    attempt = held.attempt
    if attempt is None:
        return []
    if seen.phase in ENDED:
        return _ended(held.job, attempt, seen, limits, at=at)
    if seen.phase is Phase.running:
        return _running(held.job, attempt, seen, at=at)
    if held.job.stage is Stage.scheduling and at >= attempt.launched_at + limits.start:
        said = silence(seen) if seen.phase is Phase.unknown else seen.reason
        return [late(said, limits, ending=Ending(ended_at=None, reason=said))]
    if seen.phase is Phase.pending:
        return _said(held.job, seen.reason or STARTING)
    return _said(held.job, silence(seen))


def late(said: str | None, limits: Limits, *, ending: Ending) -> Change:
    message = late_message(said, seconds=limits.start // 1_000_000)
    return Change(trigger=Trigger.late, message=message, ending=ending)


def _said(job: Job, message: str | None) -> list[Change]:
    same = job.message == message
    return [] if same else [Change(trigger=Trigger.progress, message=message)]


def _running(job: Job, attempt: Attempt, seen: Observation, *, at: int) -> list[Change]:
    if job.stage is Stage.running:
        # Nothing is left to say of a runner that answers again.
        return _said(job, None)
    started_at = _between(attempt.launched_at, seen.started_at, at)
    return [Change(trigger=Trigger.started, message=None, started_at=started_at)]


def _ended(
    job: Job, attempt: Attempt, seen: Observation, limits: Limits, *, at: int
) -> list[Change]:
    changes = list[Change]()
    if job.stage is Stage.scheduling and seen.started_at is not None:
        # It began and ended between two looks.
        changes = _running(job, attempt, seen, at=at)
        attempt = replace(attempt, started_at=changes[0].started_at)
    begun = attempt.started_at if attempt.started_at is not None else attempt.launched_at
    ended_at = _between(begun, seen.ended_at, at)
    ran = 0 if attempt.started_at is None else ended_at - attempt.started_at
    trigger = trigger_of_end(
        seen,
        has_begun=attempt.started_at is not None,
        attempts_left=job.spec.attempts - job.attempt,
        is_overdue=ran >= limits.timeout,
    )
    reason = reason_of(seen, trigger, memory_bytes=limits.memory_bytes)
    ending = Ending(ended_at=ended_at, exit_code=seen.exit_code, reason=reason)
    return [*changes, _end(job, trigger, reason, ending=ending, ran=ran)]


def _end(job: Job, trigger: Trigger, reason: str | None, *, ending: Ending, ran: int) -> Change:
    asked_at = job.cancel_requested_at
    # What had ended by itself before somebody wanted it to end as it did, but is not tried again.
    if asked_at is not None and (trigger is Trigger.failed or not _ended_before(asked_at, ending)):
        return Change(trigger=Trigger.canceled, message=None, ending=ending, ran=ran)
    if trigger is not Trigger.failed:
        return Change(trigger=trigger, message=reason, ending=ending, ran=ran)
    return Change(
        trigger=trigger,
        message=retry_message(attempt=job.attempt + 1, attempts=job.spec.attempts, reason=reason),
        wait=back_off(job.failure_count + 1),
        lets_go=True,
        ending=ending,
        ran=ran,
    )


def _ended_before(moment: datetime, ending: Ending) -> bool:
    return ending.ended_at is not None and ending.ended_at < to_micros(moment)


def unconfirmed(attempt: Attempt, *, at: int) -> Change:
    """End a canceled job of whose attempt nobody knows whether it ended."""
    return Change(
        trigger=Trigger.canceled,
        message=UNCONFIRMED,
        ending=Ending(ended_at=None, reason=UNCONFIRMED),
        ran=0 if attempt.started_at is None else max(0, at - attempt.started_at),
    )


def is_overdue(attempt: Attempt, limits: Limits, *, at: int) -> bool:
    """Tell whether an attempt runs past its deadline although its runner should have ended it."""
    started_at = attempt.started_at
    return started_at is not None and at >= started_at + limits.timeout + _OVERDUE_MARGIN


def _between(earliest: int, told: datetime | None, latest: int) -> int:
    """Return a time as the runner told it, if it can be right: its clock is not the hub's."""
    moment = latest if told is None else to_micros(told)
    return max(earliest, min(moment, latest))
