"""Interface of both database engines: transactions, readers, subscriptions, opening by URL."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from hublet.core.dataclasses import dataclass
from hublet.core.errors import Unavailable
from hublet.core.hub import Hub

# Woken when a credential, an account or a membership ends, and when an app or a secret of it changes:
# wakes every process that remembers who a token belongs to or which app a secret, and all that holds a
# connection open for a caller.
CREDENTIALS_CHANNEL = "credentials"


class Row(Protocol):
    """One row: read by column name or by position, unpacked in column order."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class DatabaseUnavailable(Unavailable):
    """The database is locked, full or away.

    Nothing of the transaction was kept. Only when PostgreSQL is lost in the very moment of
    a commit is it unknown: then all of it may have been kept, never a part.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("The database cannot answer right now; please try again shortly.")
        # For the log and the operator only: it may name hosts and files.
        self.reason = reason


class UniqueViolation(Exception):
    """A row with the same key exists already."""


class Reader(ABC):
    """Reads what is committed; each statement sees the newest state."""

    hub: Hub

    @abstractmethod
    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]: ...

    @abstractmethod
    async def fetch_one(self, sql: str, *values: Any) -> Row | None: ...

    async def fetch_value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row, or None when there is no row."""
        row = await self.fetch_one(sql, *values)
        return None if row is None else row[0]


class TransactionEnded(RuntimeError):
    """A statement came after the commit: it would begin a transaction that nobody ends."""

    def __init__(self) -> None:
        super().__init__("The transaction has ended; a later statement needs one of its own.")


class Connection(Reader):
    """One transaction. It begins with its first statement and is committed at the edge.

    It runs one statement at a time. After a statement that failed, only leaving the
    savepoint around it makes the transaction usable again.
    """

    @abstractmethod
    async def execute(self, sql: str, *values: Any) -> int:
        """Run a statement and return the number of rows it inserted, updated or deleted."""

    @abstractmethod
    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    @abstractmethod
    async def claim(self, sql: str, *values: Any) -> Sequence[Row]:
        """Like `fetch_all`, skipping rows that another transaction has locked."""

    @abstractmethod
    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Undo only what happens inside when it raises."""

    @abstractmethod
    async def lock(self, name: str) -> None:
        """Hold this name until the end; wait for another transaction that holds it.

        The wait is as long as any other for a busy database.
        """

    @abstractmethod
    def in_bulk(self) -> AbstractContextManager[None]:
        """Statements inside may touch many thousand rows: others go on while they run."""

    @abstractmethod
    async def apply(self, script: str) -> None:
        """Run the statements of a migration."""

    @abstractmethod
    async def copy_in(self, table: str, columns: Sequence[str], rows: BinaryIO) -> None:
        """Add rows from a file in PostgreSQL's text format of COPY."""

    @abstractmethod
    def wake(self, channel: str) -> None:
        """Wake the channel's subscribers, in every process, once this is committed."""


@dataclass(slots=True)
class NoticeCounts:
    """Notices between processes: how many commits had some, how many were sent and heard."""

    announced: int = 0
    sent: int = 0
    heard: int = 0
    is_connected: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """Whether the replica is used; if not, why. The lag is that of the last look that succeeded."""

    lag_seconds: float | None
    reason: str | None


class Subscription:
    """Wakes its waiter when something was committed on a channel."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        # For those who poll instead of waiting: it differs after every commit on the channel.
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1
        self._event.set()

    async def wait(self, *, timeout: float) -> bool:  # noqa: ASYNC109 - the back-stop is the point
        """Return True when woken, False when the time passed without it."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Database(ABC):
    """An open database. Create it with `open_database`."""

    kind: str
    # Whether what reads outside a transaction never waits.
    reads_at_once = False
    # Whether `read_replica` may see less than `read`.
    has_replica = False
    # None where other processes need not be notified.
    notices: NoticeCounts | None = None

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._subscriptions: dict[str, set[Subscription]] = {}

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """Commit at the end, or roll back when the body raises."""

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[Reader]: ...

    def read_replica(self) -> AbstractAsyncContextManager[Reader]:
        """Like `read`, but what it sees may be some seconds old, where there is a replica."""
        return self.read()

    def replica_status(self) -> ReplicaStatus | None:
        """Return how the replica fared when it was last looked at; None without one."""
        return None

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def check(self) -> None:
        """Raise DatabaseUnavailable unless a statement can be answered now."""

    @abstractmethod
    async def size(self) -> int:
        """Return how many bytes the database takes."""

    @contextmanager
    def subscribe(self, channel: str) -> Iterator[Subscription]:
        subscription = Subscription()
        subscribers = self._subscriptions.setdefault(channel, set())
        subscribers.add(subscription)
        try:
            yield subscription
        finally:
            subscribers.discard(subscription)

    def wake(self, channels: Iterable[str]) -> None:
        for channel in channels:
            for subscription in self._subscriptions.get(channel, ()):
                subscription.wake()

    def wake_all(self) -> None:
        self.wake(list(self._subscriptions))


@asynccontextmanager
async def open_database(hub: Hub) -> AsyncIterator[Database]:
    """Open the database that the settings name; the schema is not touched."""
    database = await _open_engine(hub)
    try:
        yield database
    finally:
        await database.close()


async def _open_engine(hub: Hub) -> Database:
    # Only the engine in use is imported: the other one costs start-up time and memory.
    url = hub.settings.database_url
    if url.startswith("sqlite:///"):
        from hublet.core.database.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteDatabase(hub, Path(url.removeprefix("sqlite:///")))

    from hublet.core.database.postgresql import PostgresDatabase  # noqa: PLC0415

    database = PostgresDatabase(hub, url)
    await database.start()
    return database


def like_pattern(text: str) -> str:
    """Return the pattern with which `LIKE … ESCAPE '~'` finds texts that contain this one."""
    for special in "~%_":
        text = text.replace(special, f"~{special}")
    return f"%{text}%"
