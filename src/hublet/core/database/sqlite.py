"""SQLite: statements run on the event loop, the fsync of a commit does not."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.database.engine import (
    Connection,
    Database,
    DatabaseUnavailable,
    Reader,
    Row,
    TransactionEnded,
)
from hublet.core.database.sqlite_dialect import engine_errors, statements, translate
from hublet.core.hub import Hub

# How often another process's commits are looked for.
_WATCH_SECONDS = 0.2


class SqliteReader(Reader, AbstractAsyncContextManager[Reader]):
    """The one reading connection. There is nothing to give back, so it is its own context."""

    def __init__(self, hub: Hub, raw: sqlite3.Connection) -> None:
        self.hub = hub
        self._raw = raw

    async def __aexit__(self, *_: object) -> None:
        pass

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        with engine_errors:
            return self._raw.execute(translate(sql), values).fetchall()

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        with engine_errors:
            row: Row | None = self._raw.execute(translate(sql), values).fetchone()
            return row


class SqliteConnection(Connection):
    def __init__(self, database: "SqliteDatabase") -> None:
        self.hub = database.hub
        self._database = database
        self._raw = database.writer
        self._begun = False
        self._ended = False
        self._depth = 0
        self._wakes: set[str] = set()

    async def _ready(self) -> sqlite3.Connection:
        if self._ended:
            raise TransactionEnded
        if not self._begun:
            await self._database.begin()
            self._begun = True
        self._database.check_whole()
        return self._raw

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        raw = await self._ready()
        with engine_errors:
            return raw.execute(translate(sql), values).fetchall()

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        rows = await self.fetch_all(sql, *values)
        return rows[0] if rows else None

    async def execute(self, sql: str, *values: Any) -> int:
        raw = await self._ready()
        with engine_errors:
            cursor = raw.execute(translate(sql), values)
            # A statement with RETURNING has counted its rows only when they are all fetched.
            cursor.fetchall()
            return max(cursor.rowcount, 0)

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        raw = await self._ready()
        with engine_errors:
            raw.executemany(translate(sql), rows)

    async def claim(self, sql: str, *values: Any) -> Sequence[Row]:
        # One writer at a time: nothing can be locked by somebody else.
        return await self.fetch_all(sql, *values)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        name = f"step_{self._depth + 1}"
        await self.execute(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._undo(name)
            raise
        else:
            await self.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def _undo(self, name: str) -> None:
        try:
            self._raw.execute(f"ROLLBACK TO {name}")
            self._raw.execute(f"RELEASE {name}")
        except sqlite3.Error:
            # SQLite has rolled back everything by itself, or must now.
            self._database.undo()

    async def lock(self, name: str) -> None:  # noqa: ARG002 - a write transaction is exclusive
        await self.execute("SELECT 1")

    async def apply(self, script: str) -> None:
        for statement in statements(script):
            await self.execute(statement)

    def wake(self, channel: str) -> None:
        self._wakes.add(channel)

    async def commit(self) -> None:
        begun, self._begun, self._ended = self._begun, False, True
        if begun:
            await self._database.commit(self._wakes)

    def roll_back(self) -> None:
        begun, self._begun, self._ended = self._begun, False, True
        if begun:
            self._database.roll_back()


class SqliteDatabase(Database):
    kind = "sqlite"

    def __init__(self, hub: Hub, path: Path) -> None:
        super().__init__(hub)
        self._patience = hub.settings.database.busy_timeout_seconds
        with engine_errors:
            self.writer = self._connect(path)
            self._raw_reader = self._connect(path)
            self._raw_reader.execute("PRAGMA query_only = ON")
        self._reader = SqliteReader(hub, self._raw_reader)
        self._closed = False
        # Whoever has the turn alone may touch the writing connection.
        self._turn = asyncio.Lock()
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._seen_version = self._version()
        self._watcher = asyncio.create_task(self._watch(), name="sqlite-watch")

    def _connect(self, path: Path) -> sqlite3.Connection:
        # Waiting inside SQLite would stop the event loop, so a lock is reported at once and
        # `begin` waits for it; only opening, before anything is served, may block.
        raw = sqlite3.connect(
            path,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        raw.row_factory = sqlite3.Row
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("PRAGMA temp_store = MEMORY")
        raw.execute("PRAGMA cache_size = -16000")
        raw.execute("PRAGMA busy_timeout = 0")
        return raw

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        conn = SqliteConnection(self)
        try:
            yield conn
        except BaseException:
            conn.roll_back()
            raise
        await conn.commit()

    def read(self) -> AbstractAsyncContextManager[Reader]:
        self._check_open()
        return self._reader

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable("the database was closed")

    async def begin(self) -> None:
        """Wait for this process's turn, then for other processes to let go of the file."""
        self._check_open()
        deadline = monotonic() + self._patience
        try:
            async with asyncio.timeout(self._patience):
                await self._turn.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable("a transaction of this process holds the file") from error
        try:
            await self._begin_immediate(deadline)
        except BaseException:
            self._turn.release()
            raise

    async def _begin_immediate(self, deadline: float) -> None:
        pause = 0.001
        while True:
            try:
                with engine_errors:
                    self.writer.execute("BEGIN IMMEDIATE")
            except DatabaseUnavailable:
                if monotonic() > deadline:
                    raise
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)

    def check_whole(self) -> None:
        # A full disk, for one, makes SQLite roll back by itself. What came after that would
        # be committed statement by statement.
        if not self.writer.in_transaction:
            raise DatabaseUnavailable("SQLite has rolled back the transaction")

    async def commit(self, wakes: Iterable[str]) -> None:
        """Commit in a thread; the next turn starts only when that is done."""
        self._check_open()
        loop = asyncio.get_running_loop()
        committed = loop.run_in_executor(self._committer, self._commit)
        # A caller that is cancelled here stops waiting. The commit does not stop: it keeps
        # the turn until its end, and then wakes whom it has to.
        committed.add_done_callback(partial(self._after_commit, wakes))
        await asyncio.shield(committed)

    def _commit(self) -> None:
        try:
            self.check_whole()
            with engine_errors:
                self.writer.execute("COMMIT")
        except BaseException:
            self.undo()
            raise

    def _after_commit(self, wakes: Iterable[str], committed: asyncio.Future[None]) -> None:
        self._turn.release()
        if committed.exception() is None:
            self.ring(wakes)

    def roll_back(self) -> None:
        # Nothing is synced, so this needs no thread and no cancellation can come between.
        self.undo()
        self._turn.release()

    def undo(self) -> None:
        with suppress(sqlite3.Error):
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")

    async def check(self) -> None:
        # A statement that reads no table would be answered without a look at the file.
        async with self.read() as conn:
            await conn.fetch_value("SELECT count(*) FROM sqlite_master")

    async def close(self) -> None:
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
        # A transaction that does not end is rolled back by the closing.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._turn.acquire()
        self._closed = True
        self._committer.shutdown()
        self._raw_reader.close()
        self.writer.close()

    def _version(self) -> int:
        version: int = self.writer.execute("PRAGMA data_version").fetchone()[0]
        return version

    async def _watch(self) -> None:
        """Notice commits of other processes, such as the administration commands."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            # Queueing for the turn, because on a busy hub it is hardly ever free.
            async with self._turn:
                with suppress(sqlite3.Error):
                    self._look()

    def _look(self) -> None:
        version = self._version()
        if version != self._seen_version:
            self._seen_version = version
            self.ring_all()
