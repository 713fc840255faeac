"""State machine of a job: its stages, the triggers between them, and the messages on why."""

from enum import StrEnum
from signal import Signals

from hublet.core.dataclasses import dataclass
from hublet.jobs.records import Observation, Phase, Stage

TIMEOUT = "Job timeout"
LOST = "the runner lost it"
SILENT = "the runner does not answer"
UNCONFIRMED = "canceled; the runner did not confirm that it ended"

_SECOND = 1_000_000
_MAX_RETRY_DELAY = 60 * _SECOND
_GIB = 2**30


class Trigger(StrEnum):
    # Only the message changes.
    progress = "progress"
    started = "started"
    succeeded = "succeeded"
    # An attempt failed, and the next one follows.
    failed = "failed"
    # The last attempt failed.
    exhausted = "exhausted"
    timed_out = "timed-out"
    # It can never begin as it was requested.
    refused = "refused"
    # It did not begin within the time to start.
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

# All transitions there are; only a deletion follows an end.
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

    # None: its end was not observed.
    ended_at: int | None
    exit_code: int | None = None
    reason: str | None = None
    # Then nothing of it has to be cleared away.
    never_began: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """A change of a job's stage or message, made by `service.transition`."""

    trigger: Trigger
    message: str | None
    # Microseconds until the job may be claimed again; only for one that goes on.
    wait: int = 0
    # Whether any worker may claim the job then; one that is over is always released.
    releases_lease: bool = False
    started_at: int | None = None
    # Of the current attempt.
    ending: AttemptEnd | None = None
    # Microseconds that the current attempt ran.
    ran: int = 0

    @property
    def is_failure(self) -> bool:
        return self.trigger in _FAILURES

    @property
    def makes_due(self) -> bool:
        """Whether the job can be claimed again now, or another one in its place.

        An attempt that was seen to end keeps its capacity until it is cleared away. A refused job
        makes room in the part of the queue that is looked at.
        """
        if self.releases_lease or self.trigger is Trigger.refused:
            return True
        ending = self.ending
        return ending is not None and (ending.never_began or ending.ended_at is None)

    @property
    def is_retry(self) -> bool:
        """Whether the job goes on with another attempt."""
        return self.trigger is Trigger.failed


def next_stage(stage: Stage, trigger: Trigger) -> Stage | None:
    """Return the stage that a trigger leads to; None: it leads nowhere from here."""
    return TRANSITIONS[stage].get(trigger)


def trigger_of_end(
    ended: Observation, *, has_begun: bool, attempts_left: int, is_overdue: bool
) -> Trigger:
    """Return the trigger for the end of an attempt; a timeout is never retried."""
    if ended.timed_out or (ended.stopped and is_overdue):
        return Trigger.timed_out
    if ended.phase is Phase.exited and not has_begun:
        return Trigger.refused
    if ended.phase is Phase.exited and ended.exit_code == 0 and not ended.out_of_memory:
        return Trigger.succeeded
    return Trigger.failed if attempts_left > 0 else Trigger.exhausted


def reason_of(ended: Observation, trigger: Trigger, *, memory_bytes: int) -> str | None:
    """Return the reason why an attempt ended; None when it succeeded."""
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
    """Return the message while the runner does not respond."""
    return f"{SILENT}: {seen.reason}" if seen.reason else SILENT


def late_message(reason: str | None, *, seconds: int) -> str:
    """Return the message of a job that did not begin in time."""
    return f"it did not begin within {seconds} s" + (f": {reason}" if reason else "")


def retry_delay(failures: int) -> int:
    """Return the microseconds before the next attempt: a second, then twice as long each time."""
    return min(_SECOND << min(failures - 1, 6), _MAX_RETRY_DELAY)


def start_retry_delay(waited: int) -> int:
    """Return the microseconds before the next try to start an attempt, tried for so long already.

    Waiting as long again as it has taken so far doubles the wait each time.
    """
    return min(max(waited, _SECOND), _MAX_RETRY_DELAY)
