"""Stepper of jobs: each step observes the attempt of one, changes its stage, or launches it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hublet.core.batching import GroupCommit
from hublet.core.clock import micros, to_micros
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.jobs.records import JobRecord, Observation, Phase
from hublet.jobs.service import transition
from hublet.jobs.stages import AttemptEnd, StageChange, Trigger, start_retry_delay
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.records import Runner, RunnerCapabilities
from hublet.runtime.sandbox import runner as sandbox_runner
from hublet.runtime.sandbox import shim_runner
from hublet.runtime.supervisor import runner_calls, store, transitions
from hublet.runtime.supervisor.cleanup import clear_attempt, stop_or_clear
from hublet.runtime.supervisor.launcher import AttemptLaunch, Launcher, attempt_folder
from hublet.runtime.supervisor.log_shipper import LogShipper
from hublet.runtime.supervisor.machines import MachineLease
from hublet.runtime.supervisor.records import AttemptRecord, HeldJob
from hublet.runtime.supervisor.runner_selection import NullRunner
from hublet.runtime.supervisor.scheduling import CANCEL_MARGIN
from hublet.runtime.supervisor.transitions import limits_of
from hublet.runtime.volumes.write_back import write_back

log = get_logger("jobs")

# What changes without a hint of the runner is observed this late.
POLL_SECONDS = 2.0
_CLOSE_POLL_SECONDS = 0.25
_LAUNCH_SECONDS = 0.25
# So long the handle of a new attempt may wait for the first observation, to be written with it.
_FIRST_LOOK_SECONDS = 0.1
_CANCEL_PATIENCE_SECONDS = 1.0
_SECOND = 1_000_000
# An attempt that one of them began the other finds, in the same folder.
_SHIM_RUNNERS = frozenset({shim_runner.NAME, sandbox_runner.NAME})

# Maps a job, as it is in the transaction that changes it, to the changes.
ChangeRule = Callable[[HeldJob], Sequence[StageChange]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AppliedChanges:
    job: JobRecord
    changes: Sequence[StageChange]


class JobStepper:
    """Steps the jobs of one Supervisor; `wake` is called with a job whose launch has ended."""

    def __init__(
        self,
        database: Database,
        runner: Runner,
        *,
        machine: MachineLease,
        logs: LogShipper,
        worker: str,
        wake: Callable[[str], None],
    ) -> None:
        self._database = database
        self._runner = runner
        self._machine = machine
        self._logs = logs
        self._worker = worker
        self._settings = database.hub.settings
        # Under load many jobs change at a time: one commit writes them together.
        self._writes = GroupCommit(database)
        self._launches = Launcher(database, runner, logs, record=self._record_launch, done=wake)
        # To find the job when the runner gives a hint.
        self.jobs_by_handle: dict[str, str] = {}

    async def step(self, job_id: str) -> float | None:
        """Do the next step; return the seconds until the one after, None when the job is released."""
        async with self._database.read() as conn:
            held = await self._find(conn, job_id)
        if held is None:
            self._launches.leave(job_id)
            # Another worker may have it, and ship its log from another folder.
            self._logs.leave(job_id)
            return None
        if held.attempt is None:
            return await self._apply(held, _release_unplaced)
        if held.attempt.elsewhere is not None:
            if held.attempt.is_lost:
                await self._logs.finish(job_id, held.attempt.number, is_cut=True)
            return await self._apply(held, self._judge_lost)
        if held.job.cancel_requested_at is not None:
            return await self._cancel(held, held.attempt)
        if not held.attempt.handle or self._launches.is_repeated(job_id):
            return await self._launch(held, held.attempt)
        # A slow launch may have ended between two steps: the next attempt needs one of its own.
        self._launches.leave(job_id)
        return await self._observe(held, held.attempt)

    async def _find(self, conn: Reader, job_id: str) -> HeldJob | None:
        locality = self._machine.locality()
        return await store.find_held(conn, job_id, locality, worker=self._worker)

    def _judge_lost(self, held: HeldJob) -> list[StageChange]:
        """Go on without an attempt of a machine that is lost; leave the job to one that is not."""
        attempt = held.attempt
        if attempt is None:
            return []
        if held.job.cancel_requested_at is not None:
            return [transitions.unconfirmed_cancel(attempt, at=micros())]
        if not attempt.is_lost:
            return _release_unplaced(held)
        reason = f"its machine {attempt.elsewhere} gives no sign of life"
        seen = Observation(phase=Phase.gone, reason=reason)
        return transitions.decide_changes(
            held, seen, limits_of(held.job, self._settings), at=micros()
        )

    async def tidy_up(self) -> None:
        """Remove what no launch needs any more; called from time to time."""
        await self._launches.tidy_up()

    async def abandon(self) -> None:
        await self._launches.abandon()
        await self._writes.settled()

    async def _launch(self, held: HeldJob, attempt: AttemptRecord) -> float | None:
        limits = limits_of(held.job, self._settings)
        reason: str | None = None
        is_new = self._launches.find(held.job.id) is None
        try:
            seen = await self._launches.result(held.job, attempt, seconds=_LAUNCH_SECONDS)
        except CannotRun as error:
            return await self._apply(held, _refusal(str(error)))
        except CannotRunYet as error:
            reason = str(error)
            await self._writes.run(lambda conn: store.leave_machine(conn, attempt))
        except Exception:
            log.exception("an attempt could not be launched", job=held.job.id)
            reason = "the runner stumbled; the log of the hub says why"
        else:
            if seen is not None:
                # What is not simply running is observed by the next step, with its handle. So is
                # what was launched before this step: its end may have been what woke it.
                is_settled = seen.lacks_volumes or (is_new and seen.phase is Phase.running)
                return POLL_SECONDS if is_settled else 0
        if micros() >= attempt.launched_at + limits.start:
            await self._launches.cancel(held.job.id)
            late = transitions.late_change(
                reason or held.job.message, limits, ending=_unstarted_end()
            )
            return await self._apply(held, lambda _: [late])
        return (
            POLL_SECONDS
            if reason is None
            else await self._apply(held, _retry_later(reason, limits))
        )

    async def _record_launch(
        self, job: JobRecord, launch: AttemptLaunch, handle: str
    ) -> Observation:
        """Write the handle of a new attempt, and in the same transaction that it has begun.

        The handle is also written when the job went on without the attempt meanwhile.
        """
        attempt = replace(launch.attempt, handle=handle)
        if self._launches.find(job.id) is launch:
            # First, so that no hint of the runner is missed.
            await self._follow(attempt)
        seen = await runner_calls.inspect(self._runner, handle, seconds=_FIRST_LOOK_SECONDS)
        await self._writes.run(lambda conn: self._write_launch(conn, attempt, seen))
        return seen

    async def _write_launch(
        self, conn: Connection, attempt: AttemptRecord, seen: Observation
    ) -> None:
        await store.set_handle(conn, attempt, attempt.handle, runner=self._runner.name)
        held = await self._find(conn, attempt.job_id) if seen.phase is Phase.running else None
        if held is not None and held.attempt is not None and held.attempt.handle == attempt.handle:
            limits = limits_of(held.job, self._settings)
            for change in transitions.decide_changes(held, seen, limits, at=micros()):
                await transition(conn, held.job, change)

    async def _follow(self, attempt: AttemptRecord) -> None:
        """Ship the log of an attempt from now on; before the runner is asked, which appends to it."""
        self.jobs_by_handle[attempt.handle] = attempt.job_id
        if not self._runner.is_local:
            folder = attempt_folder(self._settings, attempt)
            await self._logs.restore(attempt.job_id, attempt.number, folder=folder)
        self._logs.follow(attempt.job_id, attempt.number)

    async def _observe(self, held: HeldJob, attempt: AttemptRecord) -> float | None:
        await self._follow(attempt)
        limits = limits_of(held.job, self._settings)
        if transitions.is_overdue(attempt, limits, at=micros()):
            grace = self._settings.jobs.grace_seconds
            await runner_calls.stop(self._runner_of(attempt), attempt.handle, grace_seconds=grace)
        seen = await runner_calls.inspect(self._runner_of(attempt), attempt.handle)
        if transitions.decide_changes(held, seen, limits, at=micros()):
            return await self._apply_observation(held, seen)
        if seen.lacks_volumes:
            # Another worker launched it, with another data folder. A launch finds what began.
            return await self._launch(held, attempt)
        return _CLOSE_POLL_SECONDS if seen.phase is Phase.pending else POLL_SECONDS

    async def _apply_observation(self, held: HeldJob, seen: Observation) -> float | None:
        lost: list[str] = []
        if seen.phase in transitions.ENDED_PHASES and held.attempt is not None:
            lost = await self._drain(held.job, held.attempt, seen)
        limits = limits_of(held.job, self._settings)

        def decide(again: HeldJob) -> list[StageChange]:
            changes = transitions.decide_changes(again, seen, limits, at=micros())
            return transitions.add_loss(changes, lost)

        return await self._apply(held, decide, has_ended=seen.phase in transitions.ENDED_PHASES)

    async def _drain(self, job: JobRecord, attempt: AttemptRecord, seen: Observation) -> list[str]:
        """Write buckets back and end the log; return sentences on buckets that are lost."""
        is_cut = seen.phase is Phase.gone and not await self._logs.has_followed(
            job.id, attempt.number
        )
        lost = await write_back(
            self._database,
            job,
            folder=attempt_folder(self._settings, attempt),
            log=self._logs.path_of(job.id, attempt.number),
            has_begun=(attempt.started_at or seen.started_at) is not None,
        )
        await self._logs.finish(job.id, attempt.number, is_cut=is_cut)
        return lost

    async def _cancel(self, held: HeldJob, attempt: AttemptRecord) -> float | None:
        requested_at = to_micros(held.job.cancel_requested_at or held.job.created_at)
        grace = self._settings.jobs.grace_seconds
        is_past = micros() >= requested_at + round(grace * _SECOND) + CANCEL_MARGIN
        launch = self._launches.find(held.job.id)
        if not attempt.handle and (launch is None or not launch.is_ordered):
            await self._launches.cancel(held.job.id)
            return await self._apply(held, _cancel_unstarted)
        if is_past:
            seconds = await self._apply(
                held, lambda _: [transitions.unconfirmed_cancel(attempt, at=micros())]
            )
            if seconds is None:
                # What is launched even now belongs to no job, and is cleared away by a sweep.
                self._launches.leave(held.job.id)
            return seconds
        if not attempt.handle:
            return await self._cancel_launch(held, attempt)
        await self._launches.cancel(held.job.id)
        runner, patience = self._runner_of(attempt), _CANCEL_PATIENCE_SECONDS
        await runner_calls.stop(runner, attempt.handle, grace_seconds=grace, seconds=patience)
        await self._follow(attempt)
        seen = await runner_calls.inspect(runner, attempt.handle, seconds=patience)
        if seen.phase in transitions.ENDED_PHASES:
            return await self._apply_observation(held, seen)
        return _CLOSE_POLL_SECONDS

    async def _cancel_launch(self, held: HeldJob, attempt: AttemptRecord) -> float | None:
        """Wait for the end of a launch: then there may be an attempt to stop."""
        try:
            seen = await self._launches.result(held.job, attempt, seconds=_LAUNCH_SECONDS)
        except Exception:  # noqa: BLE001 - whatever it was, nothing began
            return await self._apply(held, _cancel_unstarted)
        return _CLOSE_POLL_SECONDS if seen is None else 0

    async def _apply(
        self, held: HeldJob, rule: ChangeRule, *, has_ended: bool = False
    ) -> float | None:
        """Change the job by a rule; then clear away an attempt that ended."""
        changed = await self._writes.run(lambda conn: self._change(conn, held.job.id, rule))
        if not isinstance(changed, _AppliedChanges):
            return changed
        attempt, changes = held.attempt, changed.changes
        endings = [change.ending for change in changes if change.ending]
        if attempt is not None and attempt.elsewhere is not None:
            # What is left of it is cleared away over there.
            self.jobs_by_handle.pop(attempt.handle, None)
        elif attempt is not None and attempt.handle and endings:
            self.jobs_by_handle.pop(attempt.handle, None)
            await self._clear(attempt, has_ended=has_ended)
        elif attempt is not None and any(ending.never_began for ending in endings):
            await self._launches.clear_away(attempt)
        is_released = changed.job.stage.is_terminal or any(
            change.releases_lease for change in changes
        )
        return None if is_released else POLL_SECONDS

    async def _change(
        self, conn: Connection, job_id: str, rule: ChangeRule
    ) -> _AppliedChanges | float | None:
        """Change the job, or return the seconds until the next step, None when it is released."""
        again = await self._find(conn, job_id)
        if again is None:
            return None
        job, changes = again.job, rule(again)
        for change in changes:
            changed = await transition(conn, job, change)
            if changed is None:
                return _CLOSE_POLL_SECONDS
            job = changed
        return _AppliedChanges(job=job, changes=changes)

    async def _clear(self, attempt: AttemptRecord, *, has_ended: bool) -> None:
        if has_ended:
            await clear_attempt(self._writes, self._runner_of(attempt), attempt)
        else:
            grace = self._settings.jobs.grace_seconds
            runner = self._runner_of(attempt)
            await stop_or_clear(self._writes, runner, attempt, grace_seconds=grace)

    def _runner_of(self, attempt: AttemptRecord) -> Runner:
        """Return the runner of an attempt; a null runner when the one that began it is not used now."""
        names = {attempt.runner, self._runner.name}
        if len(names) == 1 or names <= _SHIM_RUNNERS or isinstance(self._runner, NullRunner):
            return self._runner
        sentence = f"{attempt.runner} began it, and jobs.runner names another"
        return NullRunner(RunnerCapabilities(usable=False, sentence=sentence))


def _unstarted_end() -> AttemptEnd:
    return AttemptEnd(ended_at=micros(), never_began=True)


def _cancel_unstarted(held: HeldJob) -> list[StageChange]:
    ending = None if held.attempt is None else _unstarted_end()
    return [StageChange(trigger=Trigger.canceled, message=None, ending=ending)]


def _release_unplaced(held: HeldJob) -> list[StageChange]:
    if held.job.cancel_requested_at is not None:
        return _cancel_unstarted(held)
    return [StageChange(trigger=Trigger.progress, message=held.job.message, releases_lease=True)]


def _refusal(reason: str) -> ChangeRule:
    return lambda _: [
        StageChange(
            trigger=Trigger.refused,
            message=reason,
            ending=replace(_unstarted_end(), reason=reason),
        )
    ]


def _retry_later(reason: str, limits: transitions.AttemptLimits) -> ChangeRule:
    """Retry the launch after a while, but not after the time to start is over."""

    def change(held: HeldJob) -> list[StageChange]:
        now = micros()
        since = now if held.attempt is None else held.attempt.launched_at
        wait = min(start_retry_delay(now - since), since + limits.start - now)
        return [
            StageChange(
                trigger=Trigger.progress, message=reason, wait=max(wait, 0), releases_lease=True
            )
        ]

    return change
