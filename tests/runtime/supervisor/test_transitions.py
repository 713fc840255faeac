"""What an observation means, whatever the clock of the runner says."""

from datetime import datetime

import pytest

from hublet.core.clock import from_micros
from hublet.jobs.records import (
    Flavor,
    Initiator,
    InitiatorType,
    JobRecord,
    Observation,
    Phase,
    Spec,
    Stage,
)
from hublet.runtime.supervisor.records import AttemptRecord, HeldJob
from hublet.runtime.supervisor.transitions import AttemptLimits, add_loss, decide_changes
from hublet.tokens.delegations import Delegation

LIMITS = AttemptLimits(start=10**9, timeout=10**9, memory_bytes=2**30)
LAUNCHED = 1_000_000_000
NOW = 2_000_000_000


def held() -> HeldJob:
    job = JobRecord(
        id="a" * 24,
        owner_id="ada",
        creator_id="ada",
        delegation=Delegation(user_id="ada"),
        initiator=Initiator(type=InitiatorType.user, id="ada"),
        spec=Spec(image="ubuntu", environment={}, flavor=Flavor.cpu_basic),
        labels={},
        stage=Stage.scheduling,
        message="starting",
        created_at=from_micros(LAUNCHED),
    )
    attempt = AttemptRecord(
        job_id=job.id, number=1, runner="scripted", handle="x", launched_at=LAUNCHED
    )
    return HeldJob(job=job, attempt=attempt)


def at(micros: int) -> datetime:
    return from_micros(micros)


@pytest.mark.parametrize(
    ("started", "ended", "expected"),
    [
        pytest.param(LAUNCHED + 5, LAUNCHED + 9, (LAUNCHED + 5, LAUNCHED + 9), id="as told"),
        pytest.param(LAUNCHED - 5, LAUNCHED + 9, (LAUNCHED, LAUNCHED + 9), id="a slow clock"),
        pytest.param(LAUNCHED + 5, NOW + 9, (LAUNCHED + 5, NOW), id="a fast clock"),
        pytest.param(LAUNCHED + 5, LAUNCHED, (LAUNCHED + 5, LAUNCHED + 5), id="back in time"),
    ],
)
def test_no_time_is_before_the_one_before_it_nor_yet_to_come(
    started: int, ended: int, expected: tuple[int, int]
) -> None:
    seen = Observation(phase=Phase.exited, started_at=at(started), ended_at=at(ended), exit_code=0)

    begun, over = decide_changes(held(), seen, LIMITS, at=NOW)

    assert over.ending is not None
    assert (begun.started_at, over.ending.ended_at) == expected
    assert over.ran == expected[1] - expected[0]


def test_an_attempt_that_is_as_it_was_changes_nothing() -> None:
    assert decide_changes(held(), Observation(phase=Phase.pending), LIMITS, at=LAUNCHED + 1) == []


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param(["A is lost."], "A is lost.", id="one bucket"),
        pytest.param(
            ["A is lost.", "B is."], "A is lost. The log names 1 more.", id="several buckets"
        ),
    ],
)
def test_an_attempt_that_lost_its_files_has_not_ended_well(
    lost: list[str], said: str | None
) -> None:
    seen = Observation(phase=Phase.exited, exit_code=0, started_at=from_micros(LAUNCHED))

    *_, end = add_loss(decide_changes(held(), seen, LIMITS, at=NOW), lost)

    assert end.ending is not None
    assert (end.message, end.ending.reason) == (said, said)
