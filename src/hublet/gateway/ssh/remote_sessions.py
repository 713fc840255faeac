"""Sessions on another machine: the streams of a process in a job, as frames over one connection.

The machine that the client came to holds a `RemoteAttachment`; that of the job has the process, and
`serve_session` pumps its streams. A frame is a mark, the length of its data, and the data.
"""

import asyncio
import json
import os
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import field

from hublet.core.dataclasses import dataclass
from hublet.runtime.records import Attachment, TerminalSize

_HEADER = struct.Struct(">cI")
_EXIT = struct.Struct(">i")
_PIECE_BYTES = 1 << 16
_INPUT, _INPUT_END, _SIGNAL, _SIZE = b"i", b"e", b"s", b"w"
_OUTPUT, _ERROR, _EXITED = b"o", b"r", b"x"


def _frame(mark: bytes, data: bytes = b"") -> bytes:
    return _HEADER.pack(mark, len(data)) + data


async def _read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """Return the next frame; None: the other machine has closed the connection."""
    try:
        mark, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        return mark, await reader.readexactly(length)
    except (OSError, asyncio.IncompleteReadError):
        return None


@dataclass(slots=True, kw_only=True, eq=False)
class RemoteAttachment:
    """A process in a job of another machine; see `Attachment`."""

    stdin: int
    stdout: int
    stderr: int | None
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    # The other ends of stdin, stdout and stderr.
    _ends: list[socket.socket]
    _exit: asyncio.Future[int] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    async def over(cls, made: socket.socket, *, has_terminal: bool) -> "RemoteAttachment":
        """Attach over a connection to the machine of the job."""
        reader, writer = await asyncio.open_connection(sock=made)
        pairs = [socket.socketpair() for _ in range(2 if has_terminal else 3)]
        for pair in pairs:
            for each in pair:
                each.setblocking(False)
        fds = [pair[0].detach() for pair in pairs]
        attachment = cls(
            stdin=fds[0],
            stdout=fds[1],
            stderr=None if has_terminal else fds[2],
            _reader=reader,
            _writer=writer,
            _ends=[pair[1] for pair in pairs],
        )
        attachment._tasks = [
            asyncio.create_task(attachment._send_input(), name="remote-input"),
            asyncio.create_task(attachment._receive(), name="remote-output"),
        ]
        return attachment

    def send(self, number: signal.Signals) -> None:
        self._writer.write(_frame(_SIGNAL, b"%d" % number))

    def resize(self, size: TerminalSize) -> None:
        self._writer.write(_frame(_SIZE, json.dumps(size).encode()))

    def end_input(self) -> None:
        os.close(self.stdin)
        self.stdin = -1

    async def ended(self) -> int:
        return await asyncio.shield(self._exit)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._writer.close()
        for fd in (self.stdin, self.stdout, -1 if self.stderr is None else self.stderr):
            if fd >= 0:
                os.close(fd)
        self._close_ends()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send_input(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await loop.sock_recv(self._ends[0], _PIECE_BYTES):
                self._writer.write(_frame(_INPUT, data))
                await self._writer.drain()
            self._writer.write(_frame(_INPUT_END))

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        outputs = {_OUTPUT: self._ends[1], _ERROR: self._ends[-1]}
        try:
            while (frame := await _read_frame(self._reader)) is not None:
                mark, data = frame
                if mark == _EXITED and not self._exit.done():
                    self._exit.set_result(_EXIT.unpack(data)[0])
                elif mark in outputs:
                    await loop.sock_sendall(outputs[mark], data)
        except OSError:
            # Nobody reads here any more.
            return
        finally:
            if not self._exit.done():
                # Its machine went away, and so did everything that was attached.
                self._exit.set_result(-signal.SIGKILL)
            self._close_ends()

    def _close_ends(self) -> None:
        for end in self._ends:
            end.close()


async def serve_session(made: socket.socket, attachment: Attachment) -> None:
    """Pump the streams of a process here to the machine that its client came to, until either ends."""
    reader, writer = await asyncio.open_connection(sock=made)
    outputs = [(_OUTPUT, attachment.stdout)]
    if attachment.stderr is not None:
        outputs.append((_ERROR, attachment.stderr))
    pumping = asyncio.create_task(_send_all(writer, attachment, outputs), name="remote-output")
    feeding = asyncio.create_task(_feed(reader, attachment), name="remote-session")
    try:
        await asyncio.wait([pumping, feeding], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (pumping, feeding):
            each.cancel()
        await asyncio.gather(pumping, feeding, return_exceptions=True)
        attachment.close()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _send_all(
    writer: asyncio.StreamWriter, attachment: Attachment, outputs: list[tuple[bytes, int]]
) -> None:
    await asyncio.gather(
        _send_exit(writer, attachment), *(_send_output(writer, *each) for each in outputs)
    )


async def _send_exit(writer: asyncio.StreamWriter, attachment: Attachment) -> None:
    code = await attachment.ended()
    writer.write(_frame(_EXITED, _EXIT.pack(code)))


async def _send_output(writer: asyncio.StreamWriter, mark: bytes, fd: int) -> None:
    with suppress(ConnectionError):
        while data := await _read(fd):
            writer.write(_frame(mark, data))
            await writer.drain()


async def _feed(reader: asyncio.StreamReader, attachment: Attachment) -> None:
    """Do what the client's frames say, until its machine closes the connection."""
    while (frame := await _read_frame(reader)) is not None:
        mark, data = frame
        if mark == _INPUT and attachment.stdin >= 0:
            await _write(attachment.stdin, data)
        elif mark == _INPUT_END and attachment.stdin >= 0:
            attachment.end_input()
        elif mark == _SIGNAL:
            attachment.send(signal.Signals(int(data)))
        elif mark == _SIZE:
            columns, rows, width, height = json.loads(data)
            attachment.resize((columns, rows, width, height))


async def _read(fd: int) -> bytes:
    """Return what a descriptor has next; nothing at its end."""
    while True:
        try:
            return os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            await _wait_for(fd, is_read=True)
        except OSError:
            # EIO: no process has the terminal open any more.
            return b""


async def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            await _wait_for(fd, is_read=False)
        except OSError:
            # The process has closed its end.
            return


async def _wait_for(fd: int, *, is_read: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (
        (loop.add_reader, loop.remove_reader) if is_read else (loop.add_writer, loop.remove_writer)
    )
    add(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(fd)
