"""The table of stages, and the words for why a job is where it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hublet.jobs.records import Observation, Phase, Stage
from hublet.jobs.stages import (
    TRANSITIONS,
    Trigger,
    late_message,
    next_stage,
    reason_of,
    retry_delay,
    retry_message,
    silence_message,
    start_retry_delay,
    trigger_of_end,
)

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


def ended(phase: Phase = Phase.exited, **how: Any) -> Observation:
    return Observation(phase=phase, started_at=MOMENT, ended_at=MOMENT, **how)


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage.is_terminal])
def test_nothing_but_a_deletion_follows_an_end(stage: Stage) -> None:
    after = {trigger: next_stage(stage, trigger) for trigger in Trigger}

    assert {trigger for trigger, to in after.items() if to is not None} <= {Trigger.deleted}


def test_every_stage_has_its_row() -> None:
    assert set(TRANSITIONS) == set(Stage)


@pytest.mark.parametrize("trigger", Trigger)
def test_a_job_completes_only_after_it_ran(trigger: Trigger) -> None:
    assert next_stage(Stage.scheduling, trigger) is not Stage.completed


@pytest.mark.parametrize(
    ("stage", "trigger", "to"),
    [
        (Stage.scheduling, Trigger.progress, Stage.scheduling),
        (Stage.scheduling, Trigger.started, Stage.running),
        (Stage.scheduling, Trigger.failed, Stage.scheduling),
        (Stage.scheduling, Trigger.exhausted, Stage.error),
        (Stage.scheduling, Trigger.refused, Stage.error),
        (Stage.scheduling, Trigger.late, Stage.error),
        (Stage.scheduling, Trigger.canceled, Stage.canceled),
        (Stage.running, Trigger.progress, Stage.running),
        (Stage.running, Trigger.started, None),
        (Stage.running, Trigger.succeeded, Stage.completed),
        (Stage.running, Trigger.failed, Stage.scheduling),
        (Stage.running, Trigger.exhausted, Stage.error),
        (Stage.running, Trigger.timed_out, Stage.error),
        (Stage.running, Trigger.refused, None),
        (Stage.running, Trigger.late, None),
        (Stage.running, Trigger.canceled, Stage.canceled),
        (Stage.running, Trigger.deleted, None),
        (Stage.completed, Trigger.deleted, Stage.deleted),
        (Stage.error, Trigger.deleted, Stage.deleted),
        (Stage.canceled, Trigger.deleted, Stage.deleted),
        (Stage.deleted, Trigger.deleted, None),
    ],
)
def test_a_trigger_leads_where_the_table_says(
    stage: Stage, trigger: Trigger, to: Stage | None
) -> None:
    assert next_stage(stage, trigger) is to


@pytest.mark.parametrize(
    ("seen", "left", "is_overdue", "trigger"),
    [
        pytest.param(ended(exit_code=0), 0, False, Trigger.succeeded, id="it ended well"),
        pytest.param(ended(exit_code=0), 0, True, Trigger.succeeded, id="well, if a little late"),
        pytest.param(ended(exit_code=1), 1, False, Trigger.failed, id="another attempt is left"),
        pytest.param(ended(exit_code=1), 0, False, Trigger.exhausted, id="it was the last one"),
        pytest.param(ended(signal=9), 1, False, Trigger.failed, id="it was killed"),
        pytest.param(
            ended(exit_code=0, out_of_memory=True), 0, False, Trigger.exhausted, id="out of memory"
        ),
        pytest.param(ended(Phase.gone), 1, False, Trigger.failed, id="it was lost"),
        pytest.param(ended(Phase.gone), 0, False, Trigger.exhausted, id="the last one was lost"),
        pytest.param(
            ended(exit_code=0, timed_out=True), 5, False, Trigger.timed_out, id="a timeout"
        ),
        pytest.param(
            ended(signal=15, stopped=True), 5, True, Trigger.timed_out, id="the hub ended it late"
        ),
        pytest.param(
            ended(signal=15, stopped=True), 5, False, Trigger.failed, id="ended before its time"
        ),
    ],
)
def test_the_end_of_an_attempt_means(
    *, seen: Observation, left: int, is_overdue: bool, trigger: Trigger
) -> None:
    found = trigger_of_end(seen, has_begun=True, attempts_left=left, is_overdue=is_overdue)

    assert found is trigger


def test_what_ended_without_having_begun_can_never_begin() -> None:
    seen = Observation(phase=Phase.exited, exit_code=127, reason="no such file")

    found = trigger_of_end(seen, has_begun=False, attempts_left=3, is_overdue=False)

    assert found is Trigger.refused


def test_what_was_lost_before_it_began_is_tried_again() -> None:
    seen = Observation(phase=Phase.gone)

    found = trigger_of_end(seen, has_begun=False, attempts_left=3, is_overdue=False)

    assert found is Trigger.failed


@pytest.mark.parametrize(
    ("seen", "trigger", "reason"),
    [
        (ended(exit_code=0), Trigger.succeeded, None),
        (ended(exit_code=1), Trigger.failed, "exit code 1"),
        (ended(exit_code=0, timed_out=True), Trigger.timed_out, "Job timeout"),
        (ended(signal=9, exit_code=137), Trigger.failed, "killed by signal 9 (SIGKILL)"),
        (ended(signal=200), Trigger.failed, "killed by signal 200 (unknown)"),
        (ended(signal=9, out_of_memory=True), Trigger.failed, "out of memory (limit 16 GB)"),
        (ended(Phase.gone), Trigger.exhausted, "the runner lost it"),
        (ended(Phase.gone, reason="machine restarted"), Trigger.failed, "machine restarted"),
        (ended(reason="no such file"), Trigger.refused, "no such file"),
        (ended(exit_code=127, reason="no sh"), Trigger.refused, "exit code 127: no sh"),
        (ended(), Trigger.failed, "the runner lost it"),
    ],
)
def test_a_reason_is_always_told(seen: Observation, trigger: Trigger, reason: str | None) -> None:
    assert reason_of(seen, trigger, memory_bytes=16 * 2**30) == reason


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (10**6, 60)]
)
def test_the_pause_before_an_attempt_doubles_up_to_a_minute(failures: int, seconds: int) -> None:
    assert retry_delay(failures) == seconds * SECOND


@pytest.mark.parametrize(
    ("waited", "seconds"), [(-5, 1), (0, 1), (1, 1), (3, 3), (59, 59), (3599, 60)]
)
def test_the_pause_before_a_start_is_as_long_as_all_before(waited: int, seconds: int) -> None:
    assert start_retry_delay(waited * SECOND) == seconds * SECOND


def test_messages_say_what_a_reader_needs() -> None:
    assert retry_message(attempt=2, attempts=3, reason="exit code 1") == (
        "attempt 2 of 3 after exit code 1"
    )
    assert silence_message(Observation(phase=Phase.unknown)) == "the runner does not answer"
    assert silence_message(Observation(phase=Phase.unknown, reason="refused")) == (
        "the runner does not answer: refused"
    )
    assert late_message(None, seconds=60) == "it did not begin within 60 s"
    assert late_message("no disk", seconds=60) == "it did not begin within 60 s: no disk"
