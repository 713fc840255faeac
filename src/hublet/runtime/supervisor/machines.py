"""Lease of a machine: its workers renew it, and as long as it lasts its attempts are left to them.

The worker of another machine cannot see whether an attempt goes on here. It leaves the job alone until
the lease has ended; only then the attempt counts as lost, and a further one may start elsewhere. After
an outage of the database all leases have ended: so a worker judges others only once it has itself been
in touch with the database for the length of a lease.
"""

from hublet.core.clock import monotonic
from hublet.core.database import Database, Reader
from hublet.core.leases import lease_clock
from hublet.core.machine import identify
from hublet.jobs import hardware
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import machines_store
from hublet.runtime.supervisor.records import Locality, MachineRoom
from hublet.runtime.supervisor.runner_selection import NO_RUNNER
from hublet.runtime.supervisor.scheduling import SchedulingContext, machine_capacity

_RENEWALS = 3


class MachineLease:
    """The lease of this machine, as one worker renews it; others of the same machine do too."""

    def __init__(self, database: Database, runner: Runner) -> None:
        settings = database.hub.settings
        self.identity = identify(settings)
        self._database = database
        self._settings = settings
        self._runner = runner
        self._seconds = settings.worker.machine_lease_seconds
        self._address = settings.server.node_url or ""
        # Since when this worker has renewed it without a gap.
        self._since: float | None = None
        self._renewed_at = 0.0

    async def renew_when_due(self) -> None:
        """Renew the lease a few times in its length; to be called every few seconds."""
        if self._since is None or monotonic() >= self._renewed_at + self._seconds / _RENEWALS:
            await self.renew()

    async def renew(self) -> None:
        async with self._database.transaction() as conn:
            await machines_store.renew(
                conn,
                self.identity,
                address=self._address,
                room=self._room(),
                lease=round(self._seconds * 1_000_000),
            )
        now = monotonic()
        if self._since is None or now > self._renewed_at + self._seconds:
            self._since = now
        self._renewed_at = now

    def locality(self) -> Locality:
        """Return what can be looked after here now."""
        now = monotonic()
        is_in_touch = now <= self._renewed_at + self._seconds
        may_judge = self._since is not None and now >= self._since + self._seconds and is_in_touch
        return Locality(machine=self.identity, lost_before=lease_clock() if may_judge else 0)

    async def scheduling_context(self, conn: Reader) -> SchedulingContext:
        return SchedulingContext(
            settings=self._settings,
            locality=self.locality(),
            is_local=self._runner.is_local,
            is_usable=self._runner.name != NO_RUNNER,
            other_rooms=await machines_store.list_other_rooms(conn, self.identity.id),
        )

    def _room(self) -> MachineRoom:
        total = machine_capacity(self._settings)
        is_usable = self._runner.name != NO_RUNNER
        return MachineRoom(
            jobs=total.jobs,
            cores=total.cores,
            memory_bytes=total.memory_bytes,
            flavors=tuple(hardware.offered_flavors(self._settings)) if is_usable else (),
        )
