"""Store of the spool: an SQLite file of one process; a delivery is on the disk before its response."""

import json
import os
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

# Seconds to wait after each failed attempt, or after the start of one in which the process died.
WAITS = (5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0)
# Longer than the hub retries a delivery, so that duplicates are recognized.
KEPT_SECONDS = 7 * 86400.0
# Deliveries that were given up are kept with their content, to be looked into.
GIVEN_UP_SECONDS = 30 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledDelivery:
    path: str
    delivery_id: str
    query: bytes
    headers: list[tuple[str, str]]
    body: bytes
    # Its position in the queue, and how often it was attempted; set by the store.
    number: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolCounts:
    waiting: int
    failed: int


_TABLE = """
CREATE TABLE IF NOT EXISTS deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    query BLOB NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    UNIQUE (path, delivery_id)
);
CREATE INDEX IF NOT EXISTS deliveries_waiting ON deliveries (number) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS deliveries_done ON deliveries (changed_at) WHERE state = 'done';
CREATE INDEX IF NOT EXISTS deliveries_failed ON deliveries (changed_at) WHERE state = 'failed';
"""
# Payloads are private; SQLite gives its other files the mode of this one.
_OWNER_ONLY = 0o600


class SpoolInUse(Exception):
    """Another process works from the same file."""


class SpoolStore:
    """All methods block, may be called from any thread, and have committed when they return."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY))
        self._conn = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
        try:
            self._conn.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._conn.execute("PRAGMA journal_mode = WAL")
            self._conn.execute("PRAGMA synchronous = FULL")
            self._conn.executescript(_TABLE)
        except sqlite3.OperationalError as error:
            self._conn.close()
            if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            raise SpoolInUse(f"Another process works from the spool {path}.") from error

    def close(self) -> None:
        with self._lock:
            self._conn.close()

    def add(self, delivery: SpooledDelivery, *, now: float) -> bool:
        """Add a delivery, and return whether it is new; one that was given up starts again."""
        values = (
            delivery.path,
            delivery.delivery_id,
            delivery.query,
            json.dumps(delivery.headers),
            delivery.body,
            now,
        )
        with self._lock:
            added = self._conn.execute(
                """
                INSERT INTO deliveries (path, delivery_id, query, headers, body, due_at, changed_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
                ON CONFLICT (path, delivery_id) DO UPDATE
                SET state = 'waiting', attempts = 0, due_at = ?6, changed_at = ?6
                WHERE state = 'failed'
                """,
                values,
            )
            return added.rowcount == 1

    def claim(self, *, now: float) -> SpooledDelivery | None:
        """Return the oldest delivery that is due, with this attempt counted.

        The next attempt is scheduled before this one begins: a process that dies in it waits as
        after a failure, without anybody noticing the death.
        """
        with self._lock:
            row = self._conn.execute(
                """
                SELECT number, path, delivery_id, query, headers, body, attempts FROM deliveries
                WHERE state = 'waiting' AND due_at <= ?1 ORDER BY number LIMIT 1
                """,
                (now,),
            ).fetchone()
            if row is None:
                return None
            delivery = _record(row)
            self._conn.execute(
                "UPDATE deliveries SET attempts = ?1, due_at = ?2 WHERE number = ?3",
                (delivery.attempts, now + _wait_after(delivery.attempts), delivery.number),
            )
            return delivery

    def postpone(self, delivery: SpooledDelivery, *, now: float) -> None:
        """Schedule the next attempt from the end of one that failed."""
        with self._lock:
            self._conn.execute(
                "UPDATE deliveries SET due_at = ?1 WHERE number = ?2",
                (now + _wait_after(delivery.attempts), delivery.number),
            )

    def finish(self, number: int, *, now: float) -> None:
        """Mark a delivery as done; its id is kept to recognize duplicates, its content is deleted."""
        with self._lock:
            self._conn.execute(
                """
                UPDATE deliveries SET state = 'done', changed_at = ?1,
                    query = x'', headers = '[]', body = x'' WHERE number = ?2
                """,
                (now, number),
            )
            self._prune(now)

    def give_up(self, number: int, *, now: float) -> None:
        with self._lock:
            self._conn.execute(
                "UPDATE deliveries SET state = 'failed', changed_at = ?1 WHERE number = ?2",
                (now, number),
            )
            self._prune(now)

    def _prune(self, now: float) -> None:
        for state, seconds in (("done", KEPT_SECONDS), ("failed", GIVEN_UP_SECONDS)):
            self._conn.execute(
                f"DELETE FROM deliveries WHERE state = '{state}' AND changed_at < ?1",
                (now - seconds,),
            )

    def next_due(self) -> float | None:
        with self._lock:
            [due_at] = self._conn.execute(
                "SELECT min(due_at) FROM deliveries WHERE state = 'waiting'"
            ).fetchone()
            return None if due_at is None else float(due_at)

    def counts(self) -> SpoolCounts:
        with self._lock:
            rows = self._conn.execute("SELECT state, count(*) FROM deliveries GROUP BY state")
            counts = dict(rows.fetchall())
        return SpoolCounts(waiting=counts.get("waiting", 0), failed=counts.get("failed", 0))


def _wait_after(attempts: int) -> float:
    return WAITS[min(attempts, len(WAITS)) - 1]


def _record(row: tuple[int, str, str, bytes, str, bytes, int]) -> SpooledDelivery:
    number, path, delivery_id, query, headers, body, attempts = row
    return SpooledDelivery(
        number=number,
        path=path,
        delivery_id=delivery_id,
        query=query,
        headers=[(name, value) for name, value in json.loads(headers)],
        body=body,
        attempts=attempts + 1,
    )
