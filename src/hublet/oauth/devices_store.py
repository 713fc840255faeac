"""SQL of device logins; of codes only digests are stored."""

import json
from collections.abc import Collection, Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.records import Device, DeviceState
from hublet.oauth.scopes import scopes_from_json, to_json_list

_COLUMNS = (
    "digest, app_id, scopes, state, interval_seconds, address, agent, user_id, organization_ids, "
    "authenticated_at, created_at, expires_at, access_id"
)


async def add(conn: Connection, device: Device, *, user_code_digest: str) -> bool:
    """Add a request; False when its user code is taken."""
    return await conn.execute(
        """
        INSERT INTO oauth_devices
            (digest, user_code_digest, app_id, scopes, state, interval_seconds, address, agent,
             organization_ids, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING
        """,
        device.digest, user_code_digest, device.app_id, to_json_list(device.scopes), device.state,
        device.interval, device.address, device.agent, to_json_list(device.organization_ids),
        to_micros(device.created_at), to_micros(device.expires_at),
    ) == 1  # fmt: skip


async def find(conn: Reader, digests: Sequence[str]) -> Device | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM oauth_devices WHERE digest IN each($1)", json.dumps(digests)
    )
    return _record(row) if row else None


async def find_pending(conn: Reader, user_code_digests: Sequence[str]) -> Device | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} FROM oauth_devices
        WHERE user_code_digest IN each($1) AND state = $2 AND expires_at > $3
        """,
        json.dumps(user_code_digests), DeviceState.pending, micros(),
    )  # fmt: skip
    return _record(row) if row else None


async def count_pending(conn: Reader, app_id: str) -> int:
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM oauth_devices WHERE app_id = $1 AND expires_at > $2 AND state = $3",
        app_id, micros(), DeviceState.pending,
    )  # fmt: skip
    return count


async def decide(
    conn: Connection,
    digest: str,
    state: DeviceState,
    *,
    user_id: str,
    organization_ids: Collection[str],
    authenticated_at: int,
) -> bool:
    """Store a decision; False when there is one already, or the code has expired."""
    return await conn.execute(
        """
        UPDATE oauth_devices
        SET state = $1, user_id = $2, organization_ids = $3, authenticated_at = $4, decided_at = $5
        WHERE digest = $6 AND state = $7 AND expires_at > $5
        """,
        state, user_id, to_json_list(organization_ids), authenticated_at, micros(), digest,
        DeviceState.pending,
    ) == 1  # fmt: skip


async def consume(conn: Connection, digest: str, *, access_id: str) -> bool:
    """Mark an approved request as used; False when another request was faster."""
    return await conn.execute(
        "UPDATE oauth_devices SET state = $1, access_id = $2 WHERE digest = $3 AND state = $4",
        DeviceState.consumed, access_id, digest, DeviceState.approved,
    ) == 1  # fmt: skip


async def slow_down(conn: Connection, digest: str, *, by: int) -> int | None:
    """Lengthen the interval of a pending request; return the new one."""
    interval: int | None = await conn.fetch_value(
        """
        UPDATE oauth_devices SET interval_seconds = interval_seconds + $1
        WHERE digest = $2 AND state = $3 RETURNING interval_seconds
        """,
        by, digest, DeviceState.pending,
    )  # fmt: skip
    return interval


async def remove_expired(conn: Connection, *, before: int) -> None:
    await conn.execute("DELETE FROM oauth_devices WHERE expires_at < $1", before)


def _record(row: Row) -> Device:
    return Device(
        digest=row["digest"],
        app_id=row["app_id"],
        scopes=scopes_from_json(row["scopes"]),
        state=DeviceState(row["state"]),
        interval=row["interval_seconds"],
        address=row["address"],
        agent=row["agent"],
        user_id=row["user_id"],
        organization_ids=frozenset(json.loads(row["organization_ids"])),
        authenticated_at=from_micros(row["authenticated_at"]) if row["authenticated_at"] else None,
        created_at=from_micros(row["created_at"]),
        expires_at=from_micros(row["expires_at"]),
        access_id=row["access_id"],
    )
