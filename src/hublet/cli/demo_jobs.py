"""Demo jobs: jobs of every stage with logs and usage, and scheduled jobs with their runs.

No process ever runs. The stages are written by the rules of jobs, one transaction for each job, so
that no supervisor finds one that waits; those that seem to go on are not due for years.
"""

import asyncio
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hublet.cli.demo_hub import Chance, DemoHub
from hublet.core.clock import micros, now, to_micros
from hublet.core.database import Connection
from hublet.jobs import service
from hublet.jobs.access import JobAccess, get_access
from hublet.jobs.logs.reader import log_path
from hublet.jobs.metrics import PERIOD_SECONDS, UsageLimits, append_sample, history_path
from hublet.jobs.records import Initiator, InitiatorType, JobRecord, Usage
from hublet.jobs.request_schemas import JobRequest
from hublet.jobs.schedules import service as schedules
from hublet.jobs.schedules.records import ScheduledJobRecord
from hublet.jobs.schedules.schemas import CreateScheduledJob
from hublet.jobs.stages import AttemptEnd, StageChange, Trigger, retry_message
from hublet.runtime.supervisor import store as attempts
from hublet.runtime.supervisor.records import AttemptRecord
from hublet.tokens import service as tokens

_RUNNER = "demo"
# The hour of the nightly job, and the day of the week on which it failed.
_NIGHT = 3
_BAD_NIGHT = 5
_YEARS = timedelta(days=3650) // timedelta(microseconds=1)
_REQUEST: TypeAdapter[Any] = TypeAdapter(JobRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DemoJob:
    """A job of the week: when it was asked for, how long it ran, and how it ended."""

    owner: str
    name: str
    hours_ago: float
    minutes: float
    trigger: Trigger | None
    reason: str | None = None
    exit_code: int | None = 0
    # Attempts that failed before the last one.
    failures: int = 0
    lines: int = 60
    body: dict[str, Any] | None = None


_TRAIN = {
    "command": ["python", "src/train.py", "--epochs", "4"],
    "environment": {"WANDB_MODE": "offline", "BATCH": "32"},
    "secrets": {"HF_TOKEN": "of the demo"},
    "volumes": [{"type": "model", "source": "ada/engine-7b", "mountPath": "/model"}],
    "timeoutSeconds": 14_400,
}
_JOBS = (
    _DemoJob(owner="ada", name="train-engine", hours_ago=118, minutes=190, trigger=Trigger.succeeded, lines=20_000, body=_TRAIN),
    _DemoJob(owner="ada", name="train-engine-warmup", hours_ago=96, minutes=41, trigger=Trigger.exhausted, reason="out of memory (limit 2 GB)", exit_code=137, failures=2, lines=400, body=_TRAIN | {"attempts": 3}),
    _DemoJob(owner="ada", name="evaluate", hours_ago=70, minutes=22, trigger=Trigger.succeeded, body={"command": ["python", "evaluate.py", "--task", "gsm8k"]}),
    _DemoJob(owner="ada", name="convert-weights", hours_ago=47, minutes=3, trigger=Trigger.exhausted, reason="exit code 1", exit_code=1, body={"command": ["python", "convert.py"]}),
    _DemoJob(owner="ada", name="notebook", hours_ago=26, minutes=120, trigger=Trigger.timed_out, reason="Job timeout", exit_code=None, body={"command": ["jupyter", "lab"], "expose": {"ports": [8888]}, "ssh": {"enabled": True}, "timeoutSeconds": 7200}),
    _DemoJob(owner="analytical-engines", name="sweep", hours_ago=22, minutes=35, trigger=Trigger.canceled, exit_code=None, body={"command": ["python", "sweep.py"]}),
    _DemoJob(owner="ada", name="train-longer-context", hours_ago=2.5, minutes=150, trigger=None, lines=3_000, body=_TRAIN | {"expose": {"ports": [6006]}, "ssh": {"enabled": True}}),
    _DemoJob(owner="ada", name="evaluate-again", hours_ago=0.2, minutes=0, trigger=None, lines=0, body={"command": ["python", "evaluate.py"]}),
)  # fmt: skip
_NIGHTLY = {
    "jobSpec": {"dockerImage": "python:3.12", "command": ["python", "check_plates.py"], "flavor": "cpu-basic", "labels": {"name": "check-plates"}},
    "schedule": "0 3 * * *",
}  # fmt: skip
_WEEKLY = {
    "jobSpec": {"dockerImage": "python:3.12", "command": ["python", "-c", "print('all is well')"], "flavor": "cpu-basic", "labels": {"name": "weekly-report"}},
    "schedule": "0 6 * * 1",
}  # fmt: skip


class DemoJobs:
    """Fills a hub with jobs, hour by hour of the week; the clock goes with each of them."""

    def __init__(self, hub: DemoHub, end: datetime, token: str) -> None:
        self._hub = hub
        self._end = end
        self._token = token
        self._folder = hub.database.hub.settings.database.data_dir
        self._nightly: ScheduledJobRecord | None = None
        # Each with the name of its owner.
        self.made: list[tuple[str, JobRecord]] = []

    async def fill_hour(self, moment: datetime) -> None:
        """Add the jobs of the hour that begins then."""
        if self._nightly is None:
            self._nightly = await self._add_schedules()
        if moment.hour == _NIGHT:
            await self._add_night(self._nightly, moment)
        for each in _JOBS:
            if moment <= self._end - timedelta(hours=each.hours_ago) < moment + timedelta(hours=1):
                self.made.append((each.owner, await self._add(each)))

    async def _access(self, conn: Connection, owner: str) -> JobAccess:
        caller = await tokens.find_caller(conn, self._token)
        assert caller is not None  # noqa: S101 - for the type: it was issued just now
        return await get_access(conn, caller, owner)

    async def _add(self, demo: _DemoJob) -> JobRecord:
        self._hub.set_time(self._end - timedelta(hours=demo.hours_ago))
        spec = {"dockerImage": "python:3.12", "flavor": "cpu-basic", "labels": {"name": demo.name}}
        request = _REQUEST.validate_python(spec | (demo.body or {}))
        async with self._hub.database.transaction() as conn:
            access = await self._access(conn, demo.owner)
            by = Initiator(type=InitiatorType.user, id=access.caller.user_id)
            job = await service.create(conn, access=access, initiator=by, request=request)
            began = now()
            job = await self._run(conn, job, demo)
        await asyncio.to_thread(self._write_log, job.id, demo, began)
        return job

    async def _run(self, conn: Connection, job: JobRecord, demo: _DemoJob) -> JobRecord:
        """Bring a job to its stage, each step at its time."""
        if demo.minutes == 0:
            waiting = StageChange(trigger=Trigger.progress, message="3 jobs before it", wait=_YEARS)
            return await self._step(conn, job, waiting)
        part = timedelta(minutes=demo.minutes / (demo.failures + 1))
        for number in range(1, demo.failures + 1):
            text = retry_message(attempt=number + 1, attempts=demo.failures + 1, reason=demo.reason)
            job = await self._attempt(conn, job, part, Trigger.failed, text, demo)
        return await self._attempt(conn, job, part, demo.trigger, demo.reason, demo)

    async def _attempt(
        self,
        conn: Connection,
        job: JobRecord,
        length: timedelta,
        trigger: Trigger | None,
        message: str | None,
        demo: _DemoJob,
    ) -> JobRecord:
        self._hub.set_time(now() + timedelta(seconds=8))
        number = job.attempt
        await attempts.add_attempt(conn, job, runner=_RUNNER, machine_id=None)
        begun = micros()
        wait = _YEARS if trigger is None else 0
        started = StageChange(trigger=Trigger.started, message=None, started_at=begun, wait=wait)
        job = await self._step(conn, job, started)
        if trigger is None:
            return job
        self._hub.set_time(now() + length)
        ending = AttemptEnd(ended_at=micros(), exit_code=demo.exit_code, reason=demo.reason)
        ran = micros() - begun
        change = StageChange(trigger=trigger, message=message, ending=ending, ran=ran)
        job = await self._step(conn, job, change)
        attempt = AttemptRecord(
            job_id=job.id, number=number, runner=_RUNNER, handle="", launched_at=begun
        )
        await attempts.set_removed(conn, attempt, at=micros())
        return job

    async def _step(self, conn: Connection, job: JobRecord, change: StageChange) -> JobRecord:
        changed = await service.transition(conn, job, change)
        assert changed is not None  # noqa: S101 - the steps are those of the table of stages
        return changed

    async def _add_schedules(self) -> ScheduledJobRecord:
        """Add a weekly job, and a nightly one, which is returned."""
        async with self._hub.database.transaction() as conn:
            access = await self._access(conn, "ada")
            self._weekly, nightly = [
                await schedules.create(conn, access, CreateScheduledJob.model_validate(each))
                for each in (_WEEKLY, _NIGHTLY)
            ]
        return nightly

    async def _add_night(self, nightly: ScheduledJobRecord, moment: datetime) -> None:
        self._hub.set_time(moment.replace(minute=0, second=0))
        failed = moment.weekday() == _BAD_NIGHT
        demo = _DemoJob(
            owner="ada", name="check-plates", hours_ago=0, minutes=4, lines=30,
            trigger=Trigger.exhausted if failed else Trigger.succeeded,
            reason="exit code 2" if failed else None, exit_code=2 if failed else 0,
        )  # fmt: skip
        began = now()
        async with self._hub.database.transaction() as conn:
            access = await self._access(conn, "ada")
            job = await self._run(conn, await schedules.run(conn, access, nightly), demo)
        await asyncio.to_thread(self._write_log, job.id, demo, began)

    async def finish(self) -> None:
        """Let the scheduled jobs wait for what comes next, so that no run is made up for."""
        assert self._nightly is not None  # noqa: S101 - for the type: the first hour added it
        async with self._hub.database.transaction() as conn:
            access = await self._access(conn, "ada")
            for each, suspended in ((self._weekly, False), (self._nightly, True)):
                await schedules.set_suspended(conn, access, each.id, suspended=suspended)

    def _write_log(self, job_id: str, demo: _DemoJob, began: datetime) -> None:
        """Write what the job printed, and what it used. Blocks."""
        if not demo.lines:
            return
        chance = Chance(demo.name)
        path = log_path(self._folder, job_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        start, span = to_micros(began) + 9_000_000, int(demo.minutes * 60_000_000)
        lines = [
            f"{start + span * number // demo.lines} {_line(number, demo, chance)}\n"
            for number in range(demo.lines)
        ]
        path.write_text("".join(lines))
        _write_usage(history_path(self._folder, job_id), demo, start, chance)


def _line(number: int, demo: _DemoJob, chance: Chance) -> str:
    if number == 0:
        return "\x1b[1mPython 3.12.7\x1b[0m on 2 cores"
    if number == demo.lines - 1 and demo.trigger is Trigger.exhausted:
        return f"\x1b[31mRuntimeError: {demo.reason}\x1b[0m"
    if number % 50 == 0:
        return f"\x1b[33mwarning\x1b[0m: step {number} took {chance.uniform(1, 4):.1f} s"
    loss = 0.4 + 3 * math.exp(-5 * number / demo.lines) + chance.uniform(-0.04, 0.04)
    tone = "\x1b[32m" if number % 10 == 0 else ""
    return f"{tone}step={number}{chr(27) + '[0m' if tone else ''} loss={loss:.4f} tokens/s={chance.randrange(900, 1100)}"


def _write_usage(path: Path, demo: _DemoJob, start: int, chance: Chance) -> None:
    """Write what a job used; one that runs out of memory reaches its limit."""
    limits = UsageLimits(cpu_millicores=2000, memory_bytes=2 * 2**30)
    most = 0.6 if "out of memory" in (demo.reason or "") else 0.3
    count = max(1, int(demo.minutes * 60) // PERIOD_SECONDS)
    for number in range(count):
        share = 0.4 + most * number / count + 0.3 * (1 - math.exp(-number / 60))
        usage = Usage(
            cpu_millicores=round(1200 + 500 * math.sin(number / 40) + chance.uniform(-150, 150)),
            memory_bytes=min(limits.memory_bytes, round(limits.memory_bytes * share)),
            # Now and then it writes a checkpoint.
            disk_per_second=chance.randrange(0, 4_000_000) if number % 12 < 3 else 20_000,  # noqa: PLR2004
            received_per_second=chance.randrange(1000, 900_000),
            sent_per_second=chance.randrange(1000, 80_000),
        )
        append_sample(path, usage, limits, at=start + number * PERIOD_SECONDS * 1_000_000)
