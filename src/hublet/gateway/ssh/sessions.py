"""SSH session of a guest: a command, a shell or SFTP, from its request to its last byte."""

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
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import Attachment, Terminal

log = get_logger("jobs.ssh")

# Exit status for a session that could not start.
_NOT_STARTED = 254
# A shell adds this to the number of a signal.
_BY_SIGNAL = 128
_SFTP = "sftp"
_END_OF_TRANSMISSION = b"\x04"
# A shell that is still setting up its terminal discards input, so it is sent again.
_REPEAT_SECONDS = (0.3, 1.0, 3.0, 10.0)
# Limit for reading what ended processes left in their pipes; it pauses while the client is slow.
_DRAIN_SECONDS = 5.0


class SshSession(asyncssh.SSHServerSession[bytes]):
    """One session of a connection; `tasks` holds its work, which may outlast the connection."""

    def __init__(
        self,
        attacher: JobAttacher,
        guest: Guest,
        *,
        touch: Callable[[], None],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self._attacher = attacher
        self._guest = guest
        self._touch = touch
        self._tasks = tasks
        self._request = SessionRequest()
        self._attachment: Attachment | None = None
        self._outlets: list[Outlet] = []
        self._inlet: Inlet | None = None
        # Input that came before the process was started.
        self._early = bytearray()
        self._is_early_paused = False
        self._has_ended = False
        self._repeats: list[asyncio.TimerHandle] = []
        self.is_over = False
        self._open_outlets = 0
        self._drained = asyncio.Event()
        # Whether the client's window is full.
        self._is_stalled = False
        # Set while the last bytes are awaited.
        self._drain_timeout: asyncio.Timeout | None = None
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
        self._request = replace(self._request, terminal=terminal, variables={"TERM": term_type})
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._request = replace(self._request, command=command)
        return "\0" not in command

    def subsystem_requested(self, subsystem: str) -> bool:
        client = str(self._chan.get_extra_info("client_version", ""))
        self._request = replace(self._request, sftp=True, terminal=None, client=client)
        return subsystem == _SFTP

    def session_started(self) -> None:
        variables = {**self._chan.get_environment(), **self._request.variables}
        self._request = replace(self._request, variables=variables)
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
        if self._attachment is not None and self._request.terminal is not None:
            self._attachment.resize(size)
        elif self._request.terminal is not None:
            terminal = replace(self._request.terminal, size=size)
            self._request = replace(self._request, terminal=terminal)

    def signal_received(self, signal: str) -> None:
        if self._attachment is not None and (number := _find_signal(signal)) is not None:
            self._attachment.send(number)

    def break_received(self, msec: int) -> bool:  # noqa: ARG002 - as the library names it.
        if self._attachment is not None:
            self._attachment.send(signal.SIGINT)
        return True

    def pause_writing(self) -> None:
        self._is_stalled = True
        for outlet in self._outlets:
            outlet.pause()
        self._reset_drain_timeout()

    def resume_writing(self) -> None:
        self._is_stalled = False
        for outlet in self._outlets:
            outlet.resume()
        self._reset_drain_timeout()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above.
        self.is_over = True
        if self._running is not None and self._attachment is not None:
            # Without an attachment `_run` is still starting one, and sees `is_over` itself.
            self._running.cancel()

    async def _run(self) -> None:
        try:
            attachment = await self._attacher.begin(self._guest, self._request)
        except (CannotAttach, SecretsGone) as error:
            self._refuse(str(error))
            return
        except Exception:
            log.exception("a session could not begin", job=self._guest.running.job.id)
            self._refuse("The session could not begin; the log of the hub says why.")
            return
        try:
            if not self.is_over:
                self._connect(attachment)
                await self._send_exit(attachment)
        finally:
            self._release(attachment)
            await attachment.wait_closed()

    def _refuse(self, sentence: str) -> None:
        with suppress(OSError):
            self._chan.write_stderr(f"{sentence}\r\n".encode())
            self._chan.exit(_NOT_STARTED)

    def _connect(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._inlet = Inlet(
            attachment.stdin,
            pause=self._chan.pause_reading,
            resume=self._chan.resume_reading,
            finish=self._close_stdin,
            is_paused=self._is_early_paused,
        )
        early, has_ended = bytes(self._early), self._has_ended
        self._early.clear()
        # This may resume the channel, whose input is then written before it returns.
        self._inlet.write(early)
        if has_ended:
            self._end_input(self._inlet)
        targets: list[tuple[int, Callable[[bytes], None]]] = [(attachment.stdout, self._chan.write)]
        if attachment.stderr is not None:
            targets.append((attachment.stderr, self._chan.write_stderr))
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
        if self._request.terminal is None:
            inlet.end()
            return
        inlet.write(_END_OF_TRANSMISSION)
        later = asyncio.get_running_loop().call_later
        self._repeats = [
            later(seconds, inlet.write, _END_OF_TRANSMISSION) for seconds in _REPEAT_SECONDS
        ]

    def _close_stdin(self) -> None:
        if self._attachment is not None:
            self._attachment.end_input()

    async def _send_exit(self, attachment: Attachment) -> None:
        code = await attachment.ended()
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
            async with asyncio.timeout(None) as self._drain_timeout:
                self._reset_drain_timeout()
                await self._drained.wait()
        finally:
            self._drain_timeout = None

    def _reset_drain_timeout(self) -> None:
        """Let the timeout run only while the client reads."""
        if self._drain_timeout is not None and not self._drain_timeout.expired():
            soon = asyncio.get_running_loop().time() + _DRAIN_SECONDS
            self._drain_timeout.reschedule(None if self._is_stalled else soon)

    def _release(self, attachment: Attachment) -> None:
        for each in self._repeats:
            each.cancel()
        for part in (*self._outlets, self._inlet):
            if part is not None:
                part.close()
        attachment.close()


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        # Real-time signals have numbers only.
        return None


def _find_signal(name: str) -> signal.Signals | None:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        return None
