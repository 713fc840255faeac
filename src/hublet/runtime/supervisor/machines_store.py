"""SQL of machines: their leases, their addresses and the room that they have for jobs."""

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.core.leases import lease_clock
from hublet.core.machine import MachineIdentity
from hublet.runtime.supervisor.records import MachineRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """A machine as the others know it; times are on the clock of leases."""

    id: str
    name: str
    # Empty: no process of it answers requests.
    address: str
    seen_at: int
    lease_ends: int

    @property
    def is_lost(self) -> bool:
        return self.lease_ends < lease_clock()


async def renew(
    conn: Connection, machine: MachineIdentity, *, address: str, room: MachineRoom, lease: int
) -> None:
    """Write that a machine is alive; a process without an address leaves that of another alone."""
    now = lease_clock()
    await conn.execute(
        """
        INSERT INTO machines (id, folder_id, name, address, room, seen_at, lease_ends)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (id) DO UPDATE SET
            folder_id = excluded.folder_id, name = excluded.name, room = excluded.room,
            address = CASE WHEN excluded.address = '' THEN machines.address ELSE excluded.address END,
            seen_at = excluded.seen_at, lease_ends = excluded.lease_ends
        """,
        machine.id, machine.folder_id, machine.name, address, msgspec.json.encode(room).decode(),
        now, now + lease,
    )  # fmt: skip


async def list_other_rooms(conn: Reader, machine_id: str) -> list[MachineRoom]:
    """Return what every other machine has whose lease has not ended."""
    rows = await conn.fetch_all(
        "SELECT room FROM machines WHERE id <> $1 AND lease_ends >= $2", machine_id, lease_clock()
    )
    return [msgspec.json.decode(row["room"], type=MachineRoom) for row in rows]


async def find(conn: Reader, machine_id: str) -> MachineRecord | None:
    row = await conn.fetch_one(
        "SELECT id, name, address, seen_at, lease_ends FROM machines WHERE id = $1", machine_id
    )
    return None if row is None else _record(row)


async def list_machines(conn: Reader) -> list[MachineRecord]:
    rows = await conn.fetch_all(
        "SELECT id, name, address, seen_at, lease_ends FROM machines ORDER BY name, id"
    )
    return [_record(row) for row in rows]


def _record(row: Row) -> MachineRecord:
    return MachineRecord(
        id=row["id"],
        name=row["name"],
        address=row["address"],
        seen_at=row["seen_at"],
        lease_ends=row["lease_ends"],
    )


async def has_forgotten(conn: Reader, *, seen_before: int) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM machines WHERE seen_at < $1 LIMIT 1", seen_before)
    return found is not None


async def forget(conn: Connection, *, seen_before: int) -> None:
    """Remove machines that nobody expects back, and count their attempts as cleared away.

    Where one does come back its runner has attempts that no row names, and stops them.
    """
    await conn.execute(
        """
        UPDATE job_attempts SET removed_at = $2, ended_at = coalesce(ended_at, $2)
        WHERE removed_at IS NULL AND machine_id IN (SELECT id FROM machines WHERE seen_at < $1)
            AND EXISTS (
                SELECT 1 FROM jobs j WHERE j.id = job_id
                    AND (number < j.attempt OR j.stage NOT IN ('SCHEDULING', 'RUNNING'))
            )
        """,
        seen_before, micros(),
    )  # fmt: skip
    await conn.execute(
        """
        DELETE FROM machines WHERE seen_at < $1 AND NOT EXISTS (
            SELECT 1 FROM job_attempts a WHERE a.machine_id = machines.id AND a.removed_at IS NULL
        )
        """,
        seen_before,
    )
