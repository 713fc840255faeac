"""Looks after one job at a time: each step does what is next and tells when to look again."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hublet.core.batching import GroupCommit
from hublet.core.clock import micros, to_micros
from hublet.core.database import Connection, Database
from hublet.core.light_dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.jobs.overseeing import asking, judging, store
from hublet.jobs.overseeing.clearing.sweeping import clear, end_or_clear
from hublet.jobs.overseeing.keeping import keep
from hublet.jobs.overseeing.launching import Launches
from hublet.jobs.overseeing.no_runner import NoRunner
from hublet.jobs.overseeing.orders import limits_of
from hublet.jobs.overseeing.records import Attempt, Change, Ending, Held
from hublet.jobs.records import Job
from hublet.jobs.runners import process, sandbox
from hublet.jobs.runners.records import (
    Ability,
    CannotRun,
    Observation,
    Phase,
    Runner,
    TryLater,
)
from hublet.jobs.stages import Trigger, start_back_off

log = get_logger("jobs")

# What changes without a hint of the runner is seen this late.
POLL_SECONDS = 2.0
_CLOSE_POLL_SECONDS = 0.25
_LAUNCH_SECONDS = 0.25
# A cancel is over 5 s after the grace, of which a silent runner may still take up two.
_CANCEL_MARGIN = 2_500_000
_CANCEL_PATIENCE_SECONDS = 1.0
_SECOND = 1_000_000
# What one of them began the other finds, in the same folder.
_SHIM_RUNNERS = frozenset({process.NAME, sandbox.NAME})

# From the job as it is when something is changed to what is changed.
Judge = Callable[[Held], Sequence[Change]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changed:
    job: Job
    changes: Sequence[Change]


class Attendant:
    """Looks after the jobs of one Overseer; `wake` is told of those to look at again."""

    def __init__(
        self, database: Database, runner: Runner, *, worker: str, wake: Callable[[str], None]
    ) -> None:
        self._database = database
        self._runner = runner
        self._worker = worker
        self._settings = database.hub.settings
        # Under load many jobs change at a time, and one commit is enough for them.
        self._writes = GroupCommit(database)
        self._launches = Launches(database, runner, writes=self._writes, done=wake)
        # For the hints of the runner.
        self.jobs_by_handle: dict[str, str] = {}

    async def step(self, job_id: str) -> float | None:
        """Do what is next; return the seconds until the next look, None when it is let go of."""
        async with self._database.read() as conn:
            held = await store.find_held(conn, job_id, worker=self._worker)
        if held is None:
            self._launches.leave(job_id)
            return None
        if held.attempt is None:
            return await self._follow(held, _without_place)
        if held.job.cancel_requested_at is not None:
            return await self._cancel(held, held.attempt)
        if not held.attempt.handle:
            return await self._launch(held, held.attempt)
        return await self._observe(held, held.attempt)

    async def abandon(self) -> None:
        await self._launches.abandon()
        await self._writes.settled()

    async def _launch(self, held: Held, attempt: Attempt) -> float | None:
        limits = limits_of(held.job, self._settings)
        said: str | None = None
        try:
            handle = await self._launches.result(held.job, attempt, seconds=_LAUNCH_SECONDS)
        except CannotRun as error:
            return await self._follow(held, _refusal(str(error)))
        except TryLater as error:
            said = str(error)
        except Exception:
            log.exception("an attempt could not be launched", job=held.job.id)
            said = "the runner stumbled; the log of the hub says why"
        else:
            if handle is not None:
                attempt = replace(attempt, handle=handle)
                return await self._observe(replace(held, attempt=attempt), attempt)
        if micros() >= attempt.launched_at + limits.start:
            await self._launches.cancel(held.job.id)
            late = judging.late(said or held.job.message, limits, ending=_never_began())
            return await self._follow(held, lambda _: [late])
        return POLL_SECONDS if said is None else await self._follow(held, _later(said, limits))

    async def _observe(self, held: Held, attempt: Attempt) -> float | None:
        self.jobs_by_handle[attempt.handle] = held.job.id
        limits = limits_of(held.job, self._settings)
        if judging.is_overdue(attempt, limits, at=micros()):
            grace = self._settings.jobs.grace_seconds
            await asking.stop(self._runner_of(attempt), attempt.handle, grace_seconds=grace)
        seen = await asking.inspect(self._runner_of(attempt), attempt.handle)
        if not judging.judge(held, seen, limits, at=micros()):
            return _CLOSE_POLL_SECONDS if seen.phase is Phase.pending else POLL_SECONDS
        return await self._follow_sight(held, seen)

    async def _follow_sight(self, held: Held, seen: Observation) -> float | None:
        if seen.phase in judging.ENDED and held.attempt is not None:
            await keep(self._database, held.job, held.attempt)
        limits = limits_of(held.job, self._settings)
        return await self._follow(
            held,
            lambda again: judging.judge(again, seen, limits, at=micros()),
            has_ended=seen.phase in judging.ENDED,
        )

    async def _cancel(self, held: Held, attempt: Attempt) -> float | None:
        asked_at = to_micros(held.job.cancel_requested_at or held.job.created_at)
        grace = self._settings.jobs.grace_seconds
        is_past = micros() >= asked_at + round(grace * _SECOND) + _CANCEL_MARGIN
        launch = self._launches.find(held.job.id)
        if not attempt.handle and (launch is None or not launch.is_ordered):
            await self._launches.cancel(held.job.id)
            return await self._follow(held, _canceled_before)
        if is_past:
            return await self._follow(held, lambda _: [judging.unconfirmed(attempt, at=micros())])
        if not attempt.handle:
            return await self._cancel_launch(held, attempt)
        runner, patience = self._runner_of(attempt), _CANCEL_PATIENCE_SECONDS
        await asking.stop(runner, attempt.handle, grace_seconds=grace, seconds=patience)
        seen = await asking.inspect(runner, attempt.handle, seconds=patience)
        if seen.phase in judging.ENDED:
            return await self._follow_sight(held, seen)
        return _CLOSE_POLL_SECONDS

    async def _cancel_launch(self, held: Held, attempt: Attempt) -> float | None:
        """Wait for what the runner makes of an attempt: it may be there to be stopped."""
        try:
            handle = await self._launches.result(held.job, attempt, seconds=_LAUNCH_SECONDS)
        except Exception:  # noqa: BLE001 - whatever it was, nothing has begun
            return await self._follow(held, _canceled_before)
        return _CLOSE_POLL_SECONDS if handle is None else 0

    async def _follow(self, held: Held, judge: Judge, *, has_ended: bool = False) -> float | None:
        """Change the job as it is now; then clear away an attempt that ended."""
        changed = await self._writes.run(lambda conn: self._change(conn, held.job.id, judge))
        if not isinstance(changed, _Changed):
            return changed
        attempt, changes = held.attempt, changed.changes
        endings = [change.ending for change in changes if change.ending]
        if attempt is not None and attempt.handle and endings:
            self.jobs_by_handle.pop(attempt.handle, None)
            await self._clear(attempt, has_ended=has_ended)
        elif attempt is not None and any(ending.leaves_nothing for ending in endings):
            await self._launches.clear_away(attempt)
        is_let_go = changed.job.stage.is_terminal or any(change.lets_go for change in changes)
        return None if is_let_go else POLL_SECONDS

    async def _change(self, conn: Connection, job_id: str, judge: Judge) -> _Changed | float | None:
        """Do what is judged of a job; else return when to look again, None when it is let go of."""
        again = await store.find_held(conn, job_id, worker=self._worker)
        if again is None:
            return None
        job, changes = again.job, judge(again)
        for change in changes:
            changed = await store.transition(conn, job, change)
            if changed is None:
                return _CLOSE_POLL_SECONDS
            job = changed
        return _Changed(job=job, changes=changes)

    async def _clear(self, attempt: Attempt, *, has_ended: bool) -> None:
        if has_ended:
            await clear(self._writes, self._runner_of(attempt), attempt)
        else:
            grace = self._settings.jobs.grace_seconds
            runner = self._runner_of(attempt)
            await end_or_clear(self._writes, runner, attempt, grace_seconds=grace)

    def _runner_of(self, attempt: Attempt) -> Runner:
        """Return who has an attempt; what a runner began that is not used now, nobody can ask."""
        names = {attempt.runner, self._runner.name}
        if len(names) == 1 or names <= _SHIM_RUNNERS or isinstance(self._runner, NoRunner):
            return self._runner
        sentence = f"{attempt.runner} began it, and jobs.runner names another"
        return NoRunner(Ability(usable=False, sentence=sentence))


def _never_began() -> Ending:
    return Ending(ended_at=micros(), leaves_nothing=True)


def _canceled_before(held: Held) -> list[Change]:
    ending = None if held.attempt is None else _never_began()
    return [Change(trigger=Trigger.canceled, message=None, ending=ending)]


def _without_place(held: Held) -> list[Change]:
    if held.job.cancel_requested_at is not None:
        return _canceled_before(held)
    return [Change(trigger=Trigger.progress, message=held.job.message, lets_go=True)]


def _refusal(reason: str) -> Judge:
    return lambda _: [
        Change(
            trigger=Trigger.refused,
            message=reason,
            ending=replace(_never_began(), reason=reason),
        )
    ]


def _later(said: str, limits: judging.Limits) -> Judge:
    """Try again after a while, but not after the time to begin is over."""

    def change(held: Held) -> list[Change]:
        now = micros()
        since = now if held.attempt is None else held.attempt.launched_at
        wait = min(start_back_off(now - since), since + limits.start - now)
        return [Change(trigger=Trigger.progress, message=said, wait=max(wait, 0), lets_go=True)]

    return change
