"""Tasks that failed too often: kept with their error until somebody looks."""

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.light_dataclasses import dataclass
from hublet.core.queue.tasks import CHANNEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTask:
    id: str
    kind: str
    attempts: int
    error: str
    parked_at: int


async def count_parked(conn: Reader) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM tasks WHERE parked_at IS NOT NULL")
    return count


async def list_parked(conn: Reader, *, limit: int = 100) -> list[ParkedTask]:
    rows = await conn.fetch_all(
        """
        SELECT id, kind, attempts, error, parked_at FROM tasks WHERE parked_at IS NOT NULL
        ORDER BY parked_at, id LIMIT $1
        """,
        limit,
    )
    return [_parked(row) for row in rows]


def _parked(row: Row) -> ParkedTask:
    return ParkedTask(
        id=row["id"],
        kind=row["kind"],
        attempts=row["attempts"],
        error=row["error"] or "",
        parked_at=row["parked_at"],
    )


async def retry_parked(conn: Connection, *, task_id: str | None = None) -> int:
    """Give one parked task, or all of them, a fresh start."""
    count = await conn.execute(
        """
        UPDATE tasks SET parked_at = NULL, error = NULL, attempts = 0, due_at = $1
        WHERE parked_at IS NOT NULL AND ($2 = '' OR id = $2)
        """,
        micros(), task_id or "",
    )  # fmt: skip
    conn.wake(CHANNEL)
    return count
