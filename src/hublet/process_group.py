"""Process group (pre-fork server): a parent with the listening sockets, and children that serve them.

All children accept from the same sockets, so that no connection is lost with a child that dies. The
parent holds no connection and no database: it restarts what dies, passes signals on, and waits.
"""

import asyncio
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.logs import get_logger
from hublet.core.startup import CannotStart
from hublet.first_start import FirstAdministrator
from hublet.serving import GroupMember

log = get_logger("processes")

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
# A child that lived so long and then died starts again without much of a pause.
_SETTLED_SECONDS = 60.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_READ_BYTES = 65536


def check_processes(settings: Settings) -> None:
    """Refuse what cannot run as several processes. Raises CannotStart."""
    server = settings.server
    if server.processes == 1:
        return
    if server.role == "worker":
        raise CannotStart(
            "A worker is one process (processes is 1 for the role worker): start `hublet worker` "
            "several times to have several."
        )
    if settings.database_url.startswith("sqlite:"):
        raise CannotStart(
            f"{server.processes} processes need PostgreSQL: on SQLite their writes would wait for "
            "each other. Name a database with --database-url, or leave --processes at 1."
        )
    if server.test_mode:
        raise CannotStart(
            "Test mode has one process, because its clock and its faults are those of a process: "
            "leave --processes at 1."
        )


@plain_dataclass(slots=True)
class Child:
    """One process of the group, over all of its restarts."""

    name: str
    role: str
    metrics: socket.socket
    pid: int | None = None
    started_at: float = 0.0
    pause: float = _FIRST_PAUSE_SECONDS
    # When it starts again; None: it runs.
    due_at: float | None = 0.0
    is_ready: bool = False
    # The end of the pipe on which it says so.
    ready: int | None = None


class ProcessGroup:
    """The parent. `run` returns in each child, as what the child is, and in the parent at the end."""

    def __init__(
        self, settings: Settings, *, when_ready: Callable[[FirstAdministrator | None], None]
    ) -> None:
        self._when_ready = when_ready
        self._folder = Path(tempfile.mkdtemp(prefix="hublet-"))
        names = [f"api-{number}" for number in range(1, settings.server.processes + 1)]
        roles = dict.fromkeys(names, "api")
        if settings.server.role == "all":
            roles["worker"] = "worker"
        self._paths: Mapping[str, str] = {name: str(self._folder / name) for name in roles}
        self._children = [
            Child(name=name, role=role, metrics=_listen(self._paths[name]))
            for name, role in roles.items()
        ]
        self._first: FirstAdministrator | None = None
        self._is_announced = False
        self._signals = 0
        self.exit_code = 0
        self._selector = selectors.DefaultSelector()
        # Its other end closes with the parent, however that ends: children hear of it.
        self._lifeline = os.pipe()
        # What a child says when it is ready, for the child itself.
        self._say: int | None = None

    def run(self) -> GroupMember | None:
        before = self._catch_signals()
        try:
            while self._lives():
                member = self._start_due()
                if member is not None:
                    return member
                self._wait()
                self._reap()
        finally:
            self._release_signals(before)
        shutil.rmtree(self._folder, ignore_errors=True)
        return None

    def announce_ready(self, first: FirstAdministrator | None = None) -> None:
        """Tell the parent that this child serves; the first administrator is for it to show."""
        if self._say is not None:
            told = None if first is None else asdict(first)
            os.write(self._say, json.dumps(told).encode() + b"\n")
            os.close(self._say)
            self._say = None

    async def stop_with_parent(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work of a child; stop it, as a signal would, when the parent is gone."""
        loop, gone = asyncio.get_running_loop(), self._lifeline[0]

        def stop() -> None:
            loop.remove_reader(gone)
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(gone, stop)
        await work

    def _lives(self) -> bool:
        return not self._signals or any(child.pid is not None for child in self._children)

    def _start_due(self) -> GroupMember | None:
        """Start the children that are due; return what this process is, when it is one of them."""
        for child in self._children:
            if self._signals or child.due_at is None or child.due_at > monotonic():
                continue
            if child is not self._children[0] and not self._is_prepared:
                # The first one prepares the database, and shows what is wrong with it once.
                continue
            if (member := self._fork(child)) is not None:
                return member
        return None

    @property
    def _is_prepared(self) -> bool:
        return self._is_announced or self._children[0].is_ready

    def _fork(self, child: Child) -> GroupMember | None:
        ready, say = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            os.close(self._lifeline[1])
            # A Ctrl+C in the terminal is for the parent, which passes it on.
            os.setpgid(0, 0)
            self._selector.close()
            self._say = say
            return GroupMember(
                name=child.name,
                role=child.role,
                metrics_listener=child.metrics,
                metrics_paths=self._paths,
            )
        os.close(say)
        child.pid, child.due_at, child.started_at, child.ready = pid, None, monotonic(), ready
        self._selector.register(ready, selectors.EVENT_READ, child)
        return None

    def _wait(self) -> None:
        """Wait for a signal, for a child that is ready or gone, or for one that is due."""
        due = [child.due_at for child in self._children if child.due_at and not self._signals]
        seconds = max(0.0, min(due) - monotonic()) if due else None
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Child):
                self._read_ready(key.data)
            else:
                with suppress(BlockingIOError):
                    self._wakeups.recv(_READ_BYTES)

    def _read_ready(self, child: Child) -> None:
        assert child.ready is not None  # noqa: S101 - for the type: it is registered
        told = os.read(child.ready, _READ_BYTES)
        self._selector.unregister(child.ready)
        os.close(child.ready)
        child.ready = None
        if not told:
            return
        child.is_ready = True
        if (first := json.loads(told)) is not None:
            self._first = FirstAdministrator(**first)
        if self._is_announced:
            log.info("process is back", process=child.name, pid=child.pid)
        elif all(each.is_ready for each in self._children):
            self._is_announced = True
            self._when_ready(self._first)

    def _reap(self) -> None:
        for child in self._children:
            if child.pid is None:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: Child, code: int) -> None:
        """Plan the next start of a child that has ended, or give up before all were ready once."""
        lived = monotonic() - child.started_at
        pid, child.pid, child.is_ready = child.pid, None, False
        if self._signals:
            self.exit_code = self.exit_code or (0 if code >= 0 and not code else 1)
            return
        if not self._is_announced:
            self.exit_code = code if code > 0 else 1
            self._pass_on(signal.SIGTERM)
            return
        child.pause = (
            _FIRST_PAUSE_SECONDS
            if lived >= _SETTLED_SECONDS
            else min(child.pause * 2, _LONGEST_PAUSE_SECONDS)
        )
        child.due_at = monotonic() + child.pause
        log.error(
            "process has ended, and starts again",
            process=child.name,
            pid=pid,
            exit_code=code,
            seconds=child.pause,
        )

    def _catch_signals(self) -> dict[int, object]:
        self._wakeups, sender = socket.socketpair()
        self._sender = sender
        for each in (self._wakeups, sender):
            each.setblocking(False)
        signal.set_wakeup_fd(sender.fileno())
        self._selector.register(self._wakeups, selectors.EVENT_READ)
        before: dict[int, object] = {
            number: signal.signal(number, self._heard) for number in _SIGNALS
        }
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return before

    def _release_signals(self, before: Mapping[int, object]) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._wakeups.close()
        self._sender.close()

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        # A second Ctrl+C does not wait for requests any more.
        impatient = bool(self._signals) and number == signal.SIGINT
        self._pass_on(signal.SIGINT if impatient else signal.SIGTERM)

    def _pass_on(self, number: int) -> None:
        self._signals += 1
        for child in self._children:
            if child.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, number)


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener
