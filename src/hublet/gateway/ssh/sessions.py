"""SSH session of a guest: a command, a shell or files, from its request to its last byte."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import asyncssh

from hublet.core.logs import get_logger
from hublet.gateway.records import Guest
from hublet.gateway.ssh.job_attachment import JobAttacher, SessionRequest
from hublet.gateway.ssh.pumps import HIGH_BYTES, Inlet, Outlet
from hublet.jobs.errors import SecretsGone
from hublet.runtime.attach.attachments import Attachment, Terminal
from hublet.runtime.errors import CannotAttach

log = get_logger("jobs.ssh")

# As of a shell that cannot run something.
_NOT_STARTED = 254
# As a shell tells of a signal, to which this is added.
_BY_SIGNAL = 128
_SFTP = "sftp"
_END_OF_TRANSMISSION = b"\x04"
# A shell that only just sets up its terminal loses what was typed until then.
_REPEAT_SECONDS = (0.3, 1.0, 3.0, 10.0)
# What is in the pipes of processes that are gone takes no time at all, if the client takes it.
_DRAIN_SECONDS = 5.0


class SshSession(asyncssh.SSHServerSession[bytes]):
    """`tasks` keeps what goes on until it is done, also without a connection."""

    def __init__(
        self,
        visiting: JobAttacher,
        guest: Guest,
        *,
        touch: Callable[[], None],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self._visiting = visiting
        self._guest = guest
        self._touch = touch
        self._tasks = tasks
        self._asked = SessionRequest()
        self._visit: Attachment | None = None
        self._outlets: list[Outlet] = []
        self._inlet: Inlet | None = None
        # What came before there was anybody to read it.
        self._early = bytearray()
        self._is_early_paused = False
        self._has_ended = False
        self._later: list[asyncio.TimerHandle] = []
        self.is_over = False
        self._open_outlets = 0
        self._drained = asyncio.Event()
        # Whether the client takes nothing more for now.
        self._is_stalled = False
        # How long to wait for the last bytes, once that is what is waited for.
        self._patience: asyncio.Timeout | None = None
        self._running: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._chan = chan

    def pty_requested(
        self,
        term_type: str,
        term_size: tuple[int, int, int, int],
        term_modes: Mapping[int, int],
    ) -> bool:
        terminal = Terminal(size=term_size, modes=dict(term_modes))
        self._asked = replace(self._asked, terminal=terminal, variables={"TERM": term_type})
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._asked = replace(self._asked, command=command)
        return "\0" not in command

    def subsystem_requested(self, subsystem: str) -> bool:
        client = str(self._chan.get_extra_info("client_version", ""))
        self._asked = replace(self._asked, sftp=True, terminal=None, client=client)
        return subsystem == _SFTP

    def session_started(self) -> None:
        variables = {**self._chan.get_environment(), **self._asked.variables}
        self._asked = replace(self._asked, variables=variables)
        self._running = asyncio.create_task(self._run(), name="ssh-session")
        self._tasks.add(self._running)
        self._running.add_done_callback(self._tasks.discard)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        self._touch()
        if self._inlet is not None:
            self._inlet.write(data)
            return
        self._early += data
        if len(self._early) > HIGH_BYTES and not self._is_early_paused:
            self._is_early_paused = True
            self._chan.pause_reading()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._inlet is not None:
            self._end_input(self._inlet)
        # The other direction stays open.
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        size = (width, height, pixwidth, pixheight)
        if self._visit is not None and self._asked.terminal is not None:
            self._visit.resize(size)
        elif self._asked.terminal is not None:
            terminal = replace(self._asked.terminal, size=size)
            self._asked = replace(self._asked, terminal=terminal)

    def signal_received(self, signal: str) -> None:
        if self._visit is not None and (number := _find_signal(signal)) is not None:
            self._visit.send(number)

    def break_received(self, msec: int) -> bool:  # noqa: ARG002 - as the library names it.
        if self._visit is not None:
            self._visit.send(signal.SIGINT)
        return True

    def pause_writing(self) -> None:
        self._is_stalled = True
        for outlet in self._outlets:
            outlet.pause()
        self._set_patience()

    def resume_writing(self) -> None:
        self._is_stalled = False
        for outlet in self._outlets:
            outlet.resume()
        self._set_patience()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above.
        self.is_over = True
        if self._running is not None and self._visit is not None:
            # Before it there is somebody on the way in, who is met at the door.
            self._running.cancel()

    async def _run(self) -> None:
        try:
            visit = await self._visiting.begin(self._guest, self._asked)
        except (CannotAttach, SecretsGone) as error:
            self._refuse(str(error))
            return
        except Exception:
            log.exception("a session could not begin", job=self._guest.running.job.id)
            self._refuse("The session could not begin; the log of the hub says why.")
            return
        try:
            if not self.is_over:
                self._connect(visit)
                await self._see_out(visit)
        finally:
            self._let_go(visit)
            await visit.wait_closed()

    def _refuse(self, sentence: str) -> None:
        with suppress(OSError):
            self._chan.write_stderr(f"{sentence}\r\n".encode())
            self._chan.exit(_NOT_STARTED)

    def _connect(self, visit: Attachment) -> None:
        self._visit = visit
        self._inlet = Inlet(
            visit.stdin,
            pause=self._chan.pause_reading,
            resume=self._chan.resume_reading,
            finish=self._close_stdin,
            is_paused=self._is_early_paused,
        )
        early, has_ended = bytes(self._early), self._has_ended
        self._early.clear()
        # What was held back comes, and is written, in the midst of this.
        self._inlet.write(early)
        if has_ended:
            self._end_input(self._inlet)
        targets: list[tuple[int, Callable[[bytes], None]]] = [(visit.stdout, self._chan.write)]
        if visit.stderr is not None:
            targets.append((visit.stderr, self._chan.write_stderr))
        self._open_outlets = len(targets)
        self._outlets = [
            Outlet(fd, deliver=self._delivering(write), ended=self._outlet_ended)
            for fd, write in targets
        ]

    def _delivering(self, write: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def deliver(data: bytes) -> None:
            self._touch()
            with suppress(OSError):
                write(data)

        return deliver

    def _outlet_ended(self) -> None:
        self._open_outlets -= 1
        if self._open_outlets == 0:
            self._drained.set()

    def _end_input(self, inlet: Inlet) -> None:
        if self._asked.terminal is None:
            inlet.end()
            return
        inlet.write(_END_OF_TRANSMISSION)
        later = asyncio.get_running_loop().call_later
        self._later = [
            later(seconds, inlet.write, _END_OF_TRANSMISSION) for seconds in _REPEAT_SECONDS
        ]

    def _close_stdin(self) -> None:
        if self._visit is not None:
            self._visit.end_input()

    async def _see_out(self, visit: Attachment) -> None:
        code = await visit.ended()
        with suppress(TimeoutError):
            await self._drain()
        with suppress(OSError):
            if code >= 0:
                self._chan.exit(code)
            elif (name := _signal_name(-code)) is not None:
                self._chan.exit_with_signal(name)
            else:
                self._chan.exit(_BY_SIGNAL - code)

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(None) as self._patience:
                self._set_patience()
                await self._drained.wait()
        finally:
            self._patience = None

    def _set_patience(self) -> None:
        """Let the time for the last bytes run only while the client takes them."""
        if self._patience is not None and not self._patience.expired():
            soon = asyncio.get_running_loop().time() + _DRAIN_SECONDS
            self._patience.reschedule(None if self._is_stalled else soon)

    def _let_go(self, visit: Attachment) -> None:
        for each in self._later:
            each.cancel()
        for part in (*self._outlets, self._inlet):
            if part is not None:
                part.close()
        visit.close()


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        # Those for programs' own use have numbers only.
        return None


def _find_signal(name: str) -> signal.Signals | None:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        return None
