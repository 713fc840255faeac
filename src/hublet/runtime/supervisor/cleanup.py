"""Cleanup after attempts: removes what they left behind and stops those that no job has."""

from hublet.core.batching import GroupCommit
from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.leases import lease_clock
from hublet.core.logs import get_logger
from hublet.jobs.records import DUE_JOBS
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import machines_store, runner_calls, store
from hublet.runtime.supervisor.machines import MachineLease
from hublet.runtime.supervisor.records import AttemptRecord
from hublet.runtime.supervisor.transitions import ENDED_PHASES

log = get_logger("jobs")

# A handle that only the runner knows may be about to be written into the database.
_UNKNOWN_GRACE = 60_000_000
_FORGOTTEN = 3_600_000_000
_MACHINE_FORGOTTEN = 7 * 24 * 3_600_000_000


async def clear_attempt(writes: GroupCommit, runner: Runner, attempt: AttemptRecord) -> None:
    """Clear away an attempt that has ended; `sweep` tries again what fails now."""
    if await runner_calls.remove(runner, attempt.handle):
        await writes.run(lambda conn: _free_capacity(conn, attempt))


async def _free_capacity(conn: Connection, attempt: AttemptRecord) -> None:
    await store.set_removed(conn, attempt, at=micros())
    # Its capacity is free.
    conn.wake(DUE_JOBS)


async def stop_or_clear(
    writes: GroupCommit, runner: Runner, attempt: AttemptRecord, *, grace_seconds: float
) -> None:
    """Clear an attempt away if it has ended, else stop it."""
    seen = await runner_calls.inspect(runner, attempt.handle)
    if seen.phase in ENDED_PHASES:
        await clear_attempt(writes, runner, attempt)
    else:
        await runner_calls.stop(runner, attempt.handle, grace_seconds=grace_seconds)


class Cleanup:
    """What one Supervisor cleans up from time to time."""

    def __init__(self, database: Database, runner: Runner, machine: MachineLease) -> None:
        self._database = database
        self._runner = runner
        self._machine = machine
        self._writes = GroupCommit(database)
        self._grace_seconds = database.hub.settings.jobs.grace_seconds
        # By handle, since when an attempt is known that has no row.
        self._unknown: dict[str, int] = {}

    async def sweep(self) -> None:
        await self._clear_leftovers()
        await self._stop_unknown_attempts()
        await self._forget_machines()

    async def _clear_leftovers(self) -> None:
        async with self._database.read() as conn:
            left = await store.list_leftovers(
                conn, self._machine.locality(), runner=self._runner.name
            )
            is_any_forgotten = await store.has_forgotten(conn, before=micros() - _FORGOTTEN)
        for attempt in left:
            await stop_or_clear(
                self._writes, self._runner, attempt, grace_seconds=self._grace_seconds
            )
        if is_any_forgotten:
            async with self._database.transaction() as conn:
                await store.remove_forgotten(conn, before=micros() - _FORGOTTEN)

    async def _stop_unknown_attempts(self) -> None:
        """Stop attempts that have no row, once it is certain that they get none."""
        listed = await runner_calls.list_handles(self._runner)
        if listed is None:
            return
        handles = set(listed)
        async with self._database.read() as conn:
            locality = self._machine.locality()
            known = await store.list_handles(conn, locality, runner=self._runner.name)
            launching_since = await store.oldest_launch(conn, locality)
        now = micros()
        self._unknown = {each: self._unknown.get(each, now) for each in handles - known}
        for handle, since in self._unknown.items():
            may_be_launched = launching_since is not None and launching_since <= since
            if now - since >= _UNKNOWN_GRACE and not may_be_launched:
                await self._stop_unknown(handle)

    async def _stop_unknown(self, handle: str) -> None:
        log.warning("ending an attempt that nobody knows of", handle=handle)
        seen = await runner_calls.inspect(self._runner, handle)
        if seen.phase in ENDED_PHASES:
            await runner_calls.remove(self._runner, handle)
            return
        await runner_calls.stop(self._runner, handle, grace_seconds=self._grace_seconds)

    async def _forget_machines(self) -> None:
        before = lease_clock() - _MACHINE_FORGOTTEN
        async with self._database.read() as reader:
            is_any_forgotten = await machines_store.has_forgotten(reader, seen_before=before)
        if is_any_forgotten:
            async with self._database.transaction() as conn:
                await machines_store.forget(conn, seen_before=before)
