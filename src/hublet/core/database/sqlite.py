"""SQLite engine: statements run on the event loop, fsync and bulk work in a thread."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from hublet.core.clock import monotonic
from hublet.core.database.engine import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.database.sqlite_connections import SqliteConnection, SqliteReader, engine_errors
from hublet.core.hub import Hub
from hublet.core.tracing import leaf_span

T = TypeVar("T")

# How often another process's commits are looked for.
_WATCH_SECONDS = 0.2
# Each commit survives a power cut. What need not, such as tests, saves most of its time without.
SYNCHRONOUS = "FULL"


class SqliteDatabase(Database):
    kind = "sqlite"
    reads_at_once = True

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
        raw.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("PRAGMA temp_store = MEMORY")
        raw.execute("PRAGMA cache_size = -16000")
        raw.execute("PRAGMA busy_timeout = 0")
        return raw

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        conn = SqliteConnection(self)
        with leaf_span("transaction"):
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

    async def aside(self, work: Callable[[], T]) -> T:
        """Run something with the writing connection in the thread that commits.

        Who is cancelled waits for its end all the same, which comes at once: what happens to the
        transaction next must not happen beside it.
        """
        running = asyncio.get_running_loop().run_in_executor(self._committer, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                self.writer.interrupt()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running], timeout=0.05)
            raise

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
            self.wake(wakes)

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

    async def size(self) -> int:
        async with self.read() as conn:
            pages = await conn.fetch_value("PRAGMA page_count")
            return int(pages) * int(await conn.fetch_value("PRAGMA page_size"))

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
            self.wake_all()
