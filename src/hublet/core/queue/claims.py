"""SQL of claims on tasks: a task is claimed for a lease, then finished, failed or released."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from hublet.core.clock import micros, offset
from hublet.core.database import Connection, Reader
from hublet.core.ids import random_bytes
from hublet.core.leases import lease_clock
from hublet.core.queue.tasks import CHANNEL, Task

_ERROR_CHARACTERS = 500
_LONGEST_WAIT = timedelta(hours=1)
_TASK_COLUMNS = ("id", "kind", "body", "attempts", "claimed_by", "trace")

# $1 is the hub's time, $2 that of leases; $3 is the later one, because the index knows no leases.
_IS_DUE = """parked_at IS NULL AND due_at <= $3
AND (claimed_by IS NULL AND due_at <= $1 OR claimed_by IS NOT NULL AND due_at <= $2)"""

# A claim clears the error, so a task that was claimed and has none vanished with its worker.
# Such a task, and one that broke the transaction of its batch, is run alone: it might take
# its neighbours along once more, and they would be counted with it until they are parked.
_BROKE = "It broke the transaction it ran in: "
_IS_SUSPECT = f"(attempts > 0 AND (error IS NULL OR error LIKE '{_BROKE}%'))"
_SUSPECT_FILTERS = {None: "", True: f"AND {_IS_SUSPECT}", False: f"AND NOT {_IS_SUSPECT}"}


def _times() -> tuple[int, int, int]:
    now, lease_now = micros(), lease_clock()
    return now, lease_now, max(now, lease_now)


def _whole_micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


async def claim(
    conn: Connection,
    *,
    worker: str,
    slow: bool,
    limit: int,
    lease: timedelta,
    suspects: bool | None = None,
) -> list[Task]:
    """Claim the tasks that have been due longest, for the length of a lease; oldest task first.

    Rows that another worker holds are skipped. A worker that dies lets its
    lease run out, and the task is simply due again: nothing watches for it.
    `suspects` selects only those that must run alone, or only all others.
    """
    rows = await conn.claim(
        f"""
        WITH due AS (
            SELECT id FROM tasks WHERE slow = $4 AND {_IS_DUE} {_SUSPECT_FILTERS[suspects]}
            ORDER BY due_at, id LIMIT $5 /* claim */
        )
        UPDATE tasks SET attempts = attempts + 1, claimed_by = $6, due_at = $7, error = NULL
        WHERE id IN (SELECT id FROM due)
        RETURNING id, kind, body, attempts, claimed_by, trace
        """,
        *_times(), slow, limit, worker, lease_clock() + _whole_micros(lease),
    )  # fmt: skip
    return sorted(
        (Task(**dict(zip(_TASK_COLUMNS, row, strict=True))) for row in rows), key=lambda t: t.id
    )


async def is_suspect_due(conn: Reader) -> bool:
    """Tell whether a quick task waits to be run alone."""
    value = await conn.fetch_value(
        f"SELECT 1 FROM tasks WHERE slow = $4 AND {_IS_DUE} AND {_IS_SUSPECT} LIMIT 1",
        *_times(), False,
    )  # fmt: skip
    return value is not None


async def next_due(conn: Reader, *, slow: bool | None = None) -> int | None:
    """Return when the earliest task, of one lane or of both, becomes due, in microseconds."""
    lanes = [False, True] if slow is None else [slow]
    times = [due for lane in lanes if (due := await _next_due(conn, slow=lane)) is not None]
    return min(times, default=None)


async def _next_due(conn: Reader, *, slow: bool) -> int | None:
    """Look at the head of the lane's index, then at the few tasks whose leases might run out."""
    due: int | None = await conn.fetch_value(
        """
        SELECT min(due_at) FROM (
            SELECT due_at FROM (
                SELECT due_at FROM tasks
                WHERE slow = $1 AND parked_at IS NULL AND claimed_by IS NULL
                ORDER BY due_at LIMIT 1
            ) AS waiting
            UNION ALL
            SELECT due_at + $2 FROM tasks WHERE slow = $1 AND claimed_by IS NOT NULL
        ) AS both_kinds
        """,
        slow, _whole_micros(offset()),
    )  # fmt: skip
    return due


async def extend(conn: Connection, tasks: Iterable[Task], *, lease: timedelta) -> list[Task]:
    """Extend the leases on what one worker still runs; return what it has lost.

    A task that is just being ended is locked, and skipped.
    """
    held = {(task.id, task.attempts): task for task in tasks}
    if not held:
        return []
    worker = next(iter(held.values())).claimed_by
    ids = msgspec.json.encode([task_id for task_id, _ in held]).decode()
    await conn.claim(
        """
        WITH kept AS (SELECT id FROM tasks WHERE id IN each($1) AND claimed_by = $2 /* claim */)
        UPDATE tasks SET due_at = $3 WHERE id IN (SELECT id FROM kept) RETURNING id
        """,
        ids, worker, lease_clock() + _whole_micros(lease),
    )  # fmt: skip
    rows = await conn.fetch_all(
        "SELECT id, attempts FROM tasks WHERE id IN each($1) AND claimed_by = $2", ids, worker
    )
    return [held[key] for key in held.keys() - {tuple(row) for row in rows}]


async def finish(conn: Connection, task: Task) -> bool:
    """Remove a task that was done; False when its lease was lost to another worker."""
    return await conn.execute(
        "DELETE FROM tasks WHERE id = $1 AND claimed_by = $2 AND attempts = $3",
        task.id, task.claimed_by, task.attempts,
    ) == 1  # fmt: skip


async def finish_all(conn: Connection, tasks: Sequence[Task], *, worker: str) -> bool:
    """Remove tasks that were done together; False when a lease of one was lost."""
    ids = msgspec.json.encode([task.id for task in tasks]).decode()
    rows = await conn.fetch_all(
        "DELETE FROM tasks WHERE id IN each($1) AND claimed_by = $2 RETURNING id, attempts",
        ids, worker,
    )  # fmt: skip
    return {tuple(row) for row in rows} == {(task.id, task.attempts) for task in tasks}


async def fail(
    conn: Connection, task: Task, *, error: str, max_attempts: int, broke: bool = False
) -> None:
    """Let a failed task wait longer each time; park it when it has failed too often.

    `broke` tells that it took the transaction with it, and must be run alone from now on.
    """
    now = micros()
    parked = task.attempts >= max_attempts
    await conn.execute(
        """
        UPDATE tasks SET claimed_by = NULL, error = $1, due_at = $2, parked_at = $3
        WHERE id = $4 AND claimed_by = $5 AND attempts = $6
        """,
        _storable(_BROKE + error if broke else error), now + _whole_micros(retry_delay(task.attempts)),
        now if parked else None, task.id, task.claimed_by, task.attempts,
    )  # fmt: skip


def _storable(error: str) -> str:
    # What a handler says may hold characters that no database takes, and the failure of
    # writing a failure would fail again and again.
    return error[:_ERROR_CHARACTERS].replace("\x00", "").encode(errors="replace").decode()


def retry_delay(attempts: int) -> timedelta:
    """Return the wait after this many attempts: 1 s, doubling up to an hour, 20 % of it random."""
    base = min(timedelta(seconds=2 ** min(attempts - 1, 20)), _LONGEST_WAIT)
    return base * (0.9 + 0.2 * random_bytes(1)[0] / 255)


async def release(conn: Connection, tasks: Iterable[Task], *, counted: bool = False) -> None:
    """Make tasks that were not finished due at once; by default this attempt does not count."""
    await conn.execute_many(
        """
        UPDATE tasks SET claimed_by = NULL, due_at = $1, attempts = $2
        WHERE id = $3 AND claimed_by = $4 AND attempts = $5
        """,
        [
            (micros(), t.attempts if counted else t.attempts - 1, t.id, t.claimed_by, t.attempts)
            for t in tasks
        ],
    )
    conn.wake(CHANNEL)


async def release_all(conn: Connection, *, worker: str) -> int:
    """Make all that a stopping worker holds due at once; these attempts do not count."""
    count = await conn.execute(
        """
        UPDATE tasks SET claimed_by = NULL, due_at = $1, attempts = attempts - 1
        WHERE claimed_by = $2
        """,
        micros(), worker,
    )  # fmt: skip
    if count:
        conn.wake(CHANNEL)
    return count


async def move_to_lane(conn: Connection, task: Task, *, slow: bool) -> None:
    """Move a task to the lane of its handler, which the process that added it did not know."""
    await conn.execute(
        """
        UPDATE tasks SET slow = $1, claimed_by = NULL, due_at = $2, attempts = attempts - 1
        WHERE id = $3 AND claimed_by = $4 AND attempts = $5
        """,
        slow, micros(), task.id, task.claimed_by, task.attempts,
    )  # fmt: skip
    conn.wake(CHANNEL)


async def release_dead(conn: Connection, *, worker: str) -> int:
    """Make everything a dead worker held due at once.

    The attempt stays counted: a task that kills its worker must end up parked. Only when
    a quick task was running alone, as suspects do, it is to blame and not the slow ones.
    """
    quick = await conn.fetch_all(
        "SELECT attempts FROM tasks WHERE claimed_by = $1 AND slow = $2", worker, False
    )
    one_to_blame = len(quick) == 1 and quick[0]["attempts"] > 1
    count = await conn.execute(
        """
        UPDATE tasks SET claimed_by = NULL, due_at = $1,
            attempts = attempts - CASE WHEN slow THEN $2 ELSE 0 END
        WHERE claimed_by = $3
        """,
        micros(), 1 if one_to_blame else 0, worker,
    )  # fmt: skip
    if count:
        conn.wake(CHANNEL)
    return count
