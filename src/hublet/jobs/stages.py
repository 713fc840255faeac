"""State machine of a job: stages, the triggers between them, and the messages that say why."""

from enum import StrEnum
from signal import Signals

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Observation, Phase, Stage

TIMEOUT = "Job timeout"
LOST = "the runner lost it"
SILENT = "the runner does not answer"
UNCONFIRMED = "canceled; the runner did not confirm that it ended"

_SECOND = 1_000_000
_MAX_RETRY_DELAY = 60 * _SECOND
_GIB = 2**30


class Trigger(StrEnum):
    # Something is to be said, and that is all.
    progress = "progress"
    started = "started"
    succeeded = "succeeded"
    # An attempt failed, and another one is left.
    failed = "failed"
    # An attempt failed, and it was the last.
    exhausted = "exhausted"
    timed_out = "timed-out"
    # It can never begin as it was asked for.
    refused = "refused"
    # It did not begin in the time that an attempt has for that.
    late = "late"
    canceled = "canceled"
    deleted = "deleted"


_FAILURES = frozenset({Trigger.failed, Trigger.exhausted, Trigger.timed_out})

_AFTER_RUNNING = {
    Trigger.failed: Stage.scheduling,
    Trigger.exhausted: Stage.error,
    Trigger.timed_out: Stage.error,
    Trigger.canceled: Stage.canceled,
}

# What is not here does not happen: above all, nothing but a deletion follows an end.
TRANSITIONS: dict[Stage, dict[Trigger, Stage]] = {
    Stage.scheduling: {
        Trigger.progress: Stage.scheduling,
        Trigger.started: Stage.running,
        Trigger.refused: Stage.error,
        Trigger.late: Stage.error,
        **_AFTER_RUNNING,
    },
    Stage.running: {
        Trigger.progress: Stage.running,
        Trigger.succeeded: Stage.completed,
        **_AFTER_RUNNING,
    },
    Stage.completed: {Trigger.deleted: Stage.deleted},
    Stage.error: {Trigger.deleted: Stage.deleted},
    Stage.canceled: {Trigger.deleted: Stage.deleted},
    Stage.deleted: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended."""

    # None: nobody has seen it end.
    ended_at: int | None
    exit_code: int | None = None
    reason: str | None = None
    # Whether nothing of it is left to be cleared away, because it never began.
    never_began: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """What `service.transition` does to a job."""

    trigger: Trigger
    message: str | None
    # Microseconds until it may begin; only where it waits again.
    wait: int = 0
    # Whether whoever has room may take it; a job that is over is always let go of.
    releases_lease: bool = False
    started_at: int | None = None
    # Of the attempt that the job is at.
    ending: AttemptEnd | None = None
    # Microseconds that the attempt adds to the time that the job ran.
    ran: int = 0

    @property
    def is_failure(self) -> bool:
        return self.trigger in _FAILURES

    @property
    def is_retry(self) -> bool:
        """Whether the job goes on with another attempt."""
        return self.trigger is Trigger.failed


def next_stage(stage: Stage, trigger: Trigger) -> Stage | None:
    """Return where a trigger leads; None where it leads nowhere."""
    return TRANSITIONS[stage].get(trigger)


def trigger_of_end(
    ended: Observation, *, has_begun: bool, attempts_left: int, is_overdue: bool
) -> Trigger:
    """Return what the end of an attempt means; a timeout is never tried again."""
    if ended.timed_out or (ended.stopped and is_overdue):
        return Trigger.timed_out
    if ended.phase is Phase.exited and not has_begun:
        return Trigger.refused
    if ended.phase is Phase.exited and ended.exit_code == 0 and not ended.out_of_memory:
        return Trigger.succeeded
    return Trigger.failed if attempts_left > 0 else Trigger.exhausted


def reason_of(ended: Observation, trigger: Trigger, *, memory_bytes: int) -> str | None:
    """Say why an attempt ended as it did; None when it is as it should be."""
    if trigger is Trigger.succeeded:
        return None
    if trigger is Trigger.timed_out:
        return TIMEOUT
    if ended.out_of_memory:
        return f"out of memory (limit {memory_bytes / _GIB:.3g} GB)"
    if ended.phase is Phase.gone:
        return ended.reason or LOST
    how = _exit_text(ended)
    return f"{how}: {ended.reason}" if how and ended.reason else ended.reason or how or LOST


def _exit_text(ended: Observation) -> str | None:
    if ended.signal is not None:
        return f"killed by signal {ended.signal} ({_signal_name(ended.signal)})"
    return None if ended.exit_code is None else f"exit code {ended.exit_code}"


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return "unknown"


def retry_message(*, attempt: int, attempts: int, reason: str | None) -> str:
    return f"attempt {attempt} of {attempts} after {reason or LOST}"


def silence_message(seen: Observation) -> str:
    """Say that nobody can tell how an attempt fares."""
    return f"{SILENT}: {seen.reason}" if seen.reason else SILENT


def late_message(said: str | None, *, seconds: int) -> str:
    """Say that it did not begin in time, and what stood in the way."""
    return f"it did not begin within {seconds} s" + (f": {said}" if said else "")


def retry_delay(failures: int) -> int:
    """Return the microseconds before the next attempt: a second, then twice as long each time."""
    return min(_SECOND << min(failures - 1, 6), _MAX_RETRY_DELAY)


def start_retry_delay(waited: int) -> int:
    """Return how long to wait before a start is tried again that was tried for so long.

    To wait as long again as it has taken so far is to wait twice as long each time.
    """
    return min(max(waited, _SECOND), _MAX_RETRY_DELAY)
