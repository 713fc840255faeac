"""Child process of a query: read frame by frame, killed at its deadline, its errors in the hub's words."""

import asyncio
import os
import shutil
import signal
from asyncio import Queue
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from enum import StrEnum
from importlib.util import find_spec
from typing import NamedTuple

import msgspec

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.ids import new_object_id
from hublet.sql import program
from hublet.sql.errors import (
    InvalidQuery,
    QueryCancelled,
    QueryLost,
    QueryTooLarge,
    QueryTooSlow,
    SqlUnavailable,
)
from hublet.sql.sandbox import ChildOrder, Sandbox, start
from hublet.tokens.records import Caller

GRACE_SECONDS = 2.0
_HEAD_BYTES = 5
_MAX_FRAME = 256 << 20
_END_OF_OUTPUT = b""
# What bubblewrap returns for a process that a signal ended.
_SIGNAL_BASE = 128
_SIGKILL, _SIGXCPU = 9, 24


class Frame(NamedTuple):
    """A frame of the child, see `program`; `_END_OF_OUTPUT` as its kind is none."""

    kind: bytes
    data: bytes


_PROCESS = "Queries run in a process that may read its files alone, without namespaces."
_chosen: dict[str, Sandbox] = {}


def is_installed() -> bool:
    return find_spec("duckdb") is not None


def check_installed() -> None:
    if not is_installed():
        raise SqlUnavailable(
            "This hub runs no SQL: the operator installs it with pip install 'hublet[sql]'."
        )


async def choose_sandbox(settings: Settings) -> Sandbox:
    """Return what holds children here, tried once for this process."""
    wanted = settings.sql.sandbox
    if wanted not in _chosen:
        _chosen[wanted] = await _try_sandboxes(wanted)
    return _chosen[wanted]


async def _try_sandboxes(wanted: str) -> Sandbox:
    program_path = shutil.which("bwrap") if wanted != "process" else None
    reason = "bubblewrap is not installed" if wanted != "process" else "sql.sandbox is process"
    if program_path is not None:
        sandbox = Sandbox(
            bubblewrap=program_path,
            sentence="Queries run in namespaces of their own, with read-only files and no network.",
        )
        reason = await _probe(sandbox)
        if not reason:
            return sandbox
        reason = f"bubblewrap does not work here: {reason}"
    if wanted == "bubblewrap":
        raise SqlUnavailable(f"This hub runs no SQL: {reason}.")
    return Sandbox(bubblewrap=None, sentence=f"{_PROCESS} The reason: {reason}.")


async def _probe(sandbox: Sandbox) -> str:
    """Return why a query cannot be run in a sandbox; empty when it can."""
    order = ChildOrder(
        id="probe", task="query", sql="SELECT 1", rows=1, bytes=1000, seconds=20, memory=64 << 20
    )
    async with running(sandbox, order) as child:
        kinds = [frame.kind async for frame in child.frames()]
    return "" if program.END in kinds else child.complaint or "the child said nothing"


class Child:
    """A started process: its frames, and its end."""

    def __init__(self, process: Process, *, deadline: float) -> None:
        self._process = process
        # A process that has ended is no other one by this, as it might be by its number.
        self._handle: int | None = os.pidfd_open(process.pid)
        self._deadline = deadline
        # The child must not wait for a slow reader, so all that it says waits here.
        self._frames: Queue[Frame] = Queue()
        self.was_killed = False
        self.was_cancelled = False
        self.complaint = ""
        self._reader = asyncio.create_task(self._read(), name="sql child")

    async def frames(self) -> AsyncIterator[Frame]:
        while (frame := await self._frames.get()).kind != _END_OF_OUTPUT:
            yield frame

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_signal(self) -> int:
        """The signal that ended the process; 0 when none did."""
        code = self._process.returncode or 0
        return -code if code < 0 else max(code - _SIGNAL_BASE, 0)

    @property
    def out_of_memory(self) -> bool:
        return self.exit_signal == _SIGKILL and not self.was_killed and not self.was_cancelled

    @property
    def out_of_time(self) -> bool:
        return self.was_killed or self.exit_signal == _SIGXCPU

    async def ended(self) -> None:
        await asyncio.shield(self._reader)

    def cancel(self) -> None:
        """End it because its holder wants it ended."""
        self.was_cancelled = True
        self.kill()

    def kill(self) -> None:
        """End the process; asyncio's own way may lose the code with which it ended by itself."""
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
                # While bubblewrap mounts, what it has started does not end with it.
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._deadline + GRACE_SECONDS - monotonic()):
                await self._read_frames()
        except TimeoutError:
            self.was_killed = True
        except (asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            self.kill()
            await self._process.wait()
            if self._handle is not None:
                os.close(self._handle)
            self._handle = None
            if self._process.stderr is not None:
                self.complaint = (await self._process.stderr.read(2000)).decode(errors="replace")
            self._frames.put_nowait(Frame(_END_OF_OUTPUT, b""))

    async def _read_frames(self) -> None:
        output = self._process.stdout
        assert output is not None  # noqa: S101 - it is a pipe
        while True:
            head = await output.readexactly(_HEAD_BYTES)
            size = int.from_bytes(head[1:], "big")
            if size > _MAX_FRAME:
                raise ValueError
            frame = Frame(head[:1], await output.readexactly(size))
            self._frames.put_nowait(frame)
            if frame.kind in {program.END, program.ERROR}:
                return


@asynccontextmanager
async def running(sandbox: Sandbox, order: ChildOrder) -> AsyncIterator[Child]:
    """Run a child during the body; at its end, whatever its reason, the child is dead."""
    deadline = monotonic() + order.seconds
    async with start(sandbox, order, deadline=deadline) as process:
        child = Child(process, deadline=deadline)
        try:
            yield child
        finally:
            child.kill()
            await child.ended()


class ResultFormat(StrEnum):
    json = "json"
    ndjson = "ndjson"
    arrow = "arrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    sql: str
    # Keys of views, by the names that the query uses; none: the splits of the default configuration.
    views: Mapping[str, str] = field(default_factory=dict)
    format: ResultFormat = ResultFormat.json
    limit: int | None = None
    id: str = field(default_factory=new_object_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHolder:
    """Whose query it is: a user, or an address without a token."""

    key: str
    is_anonymous: bool = False

    @classmethod
    def of(cls, caller: Caller | None, *, address: str) -> "QueryHolder":
        if caller is None:
            return cls(key=f"address {address}", is_anonymous=True)
        return cls(key=caller.user_id)


class RunningQuery:
    """A query whose columns are known: its rows as they come, and then its end."""

    def __init__(self, query_id: str, columns: bytes, run: "QueryRun") -> None:
        self.id = query_id
        # A list of names and types, as JSON.
        self.columns_json = columns
        self.row_count = 0
        self.cut = ""
        self._run = run

    async def rows(self) -> AsyncIterator[bytes]:
        """Yield the rows in the format of the request; raises a HubError when it fails on the way."""
        async for kind, data in self._run.frames():
            if kind == program.ROWS:
                yield data
            elif kind == program.END:
                end = msgspec.json.decode(data)
                self.row_count, self.cut = end["rows"], end["cut"]


class QueryRun:
    """A child with its order: its frames, and errors in the words of the hub."""

    def __init__(self, started: Child, order: ChildOrder) -> None:
        self.child = started
        self._order = order
        self._frames = started.frames()
        self.outcome = "cancelled"

    async def frames(self) -> AsyncIterator[tuple[bytes, bytes]]:
        async for kind, data in self._frames:
            if kind == program.ERROR:
                raise self._error(msgspec.json.decode(data))
            yield kind, data
            if kind == program.END:
                self.outcome = "done"
                return
        raise self._loss()

    def _error(self, told: dict[str, str]) -> HubError:
        kind, message = told["kind"], told["message"]
        self.outcome = {"deadline": "deadline", "memory": "memory"}.get(kind, "refused")
        if kind == "deadline":
            return QueryTooSlow(self._order.seconds)
        if kind == "memory":
            return QueryTooLarge(self._order.memory)
        if kind == "missing":
            return SqlUnavailable(
                "This hub reads and writes no Arrow: the operator installs it with "
                "pip install 'hublet[preview]'."
            )
        return InvalidQuery(message)

    def _loss(self) -> HubError:
        if self.child.out_of_time:
            self.outcome = "killed"
            return QueryTooSlow(self._order.seconds)
        if self.child.was_cancelled:
            self.outcome = "cancelled"
            return QueryCancelled()
        if self.child.out_of_memory:
            self.outcome = "memory"
            return QueryTooLarge(self._order.memory)
        self.outcome = "lost"
        return QueryLost()

    async def columns(self) -> bytes:
        """Wait for the columns, which come before all rows; return them as JSON."""
        async for kind, data in self.frames():
            if kind == program.COLUMNS:
                return data
        raise QueryLost
