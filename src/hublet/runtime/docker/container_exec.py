"""Attachment to a container: exec of the engine, and lookup of names in its network group."""

import asyncio
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiodocker
import aiohttp
from aiodocker.execs import Exec
from aiodocker.stream import Stream

from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.runtime.attach.attachments import (
    KILL_SCRIPT,
    SESSION_VARIABLE,
    engine_argv,
    socket_pair,
)
from hublet.runtime.docker import containers
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import AttachRequest, TerminalSize

if TYPE_CHECKING:
    from aiodocker.containers import DockerContainer

log = get_logger("jobs.ssh")

_CHUNK = 1 << 16
_LOOKUP_SECONDS = 10.0
_NOT_FOUND = 404
_STANDARD_ERROR = 2


async def attach_to_container(container_id: str, request: AttachRequest) -> "ContainerAttachment":
    """Start a process in a container of the default engine. Raises CannotAttach."""
    engine = aiodocker.Docker()
    mark = f"{SESSION_VARIABLE}={new_object_id()}"
    try:
        container = engine.containers.container(container_id)
        process = await container.exec(
            engine_argv(request),
            stdin=True,
            tty=request.terminal is not None,
            environment=[*(f"{n}={v}" for n, v in request.environment.items()), mark],
        )
        stream = process.start(detach=False)
        await stream.__aenter__()
    except (aiodocker.DockerError, aiohttp.ClientError, OSError) as error:
        await engine.close()
        raise CannotAttach(f"The job cannot be entered: the engine says: {error}") from error
    attachment = ContainerAttachment(
        engine=engine, container=container, process=process, stream=stream, mark=mark
    )
    if request.terminal is not None:
        attachment.resize(request.terminal.size)
    return attachment


@dataclass(kw_only=True)
class ContainerAttachment:
    """The engine's multiplexed stream, split into three sockets."""

    engine: aiodocker.Docker
    container: "DockerContainer"
    process: Exec
    stream: Stream
    mark: str
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Socket pairs of stdin, stdout and stderr: the client's end, then the container's.
        self._ends = [socket_pair() for _ in range(3)]
        self.stdin, self.stdout, stderr = (ours.fileno() for ours, _ in self._ends)
        self.stderr: int | None = stderr
        self._output = asyncio.create_task(self._pump_output())
        self._input = asyncio.create_task(self._pump_input())

    def send(self, number: signal.Signals) -> None:
        self._later(self._kill(number))

    def resize(self, size: TerminalSize) -> None:
        self._later(self.process.resize(w=size[0], h=size[1]))

    def end_input(self) -> None:
        with suppress(OSError):
            self._ends[0][0].shutdown(socket.SHUT_WR)

    async def ended(self) -> int:
        await asyncio.wait([self._output])
        await self._kill(signal.SIGKILL)
        try:
            details = await self.process.inspect()
        except (aiodocker.DockerError, aiohttp.ClientError, OSError):
            return -signal.SIGKILL
        return -signal.SIGKILL if details["ExitCode"] is None else int(details["ExitCode"])

    def close(self) -> None:
        for ours, _ in self._ends:
            ours.close()
        self._output.cancel()
        self._input.cancel()
        self._later(self._clear())

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks)

    async def _pump_output(self) -> None:
        loop = asyncio.get_running_loop()
        ends = {number: theirs for number, (_, theirs) in enumerate(self._ends)}
        with suppress(OSError, aiohttp.ClientError):
            while (message := await self.stream.read_out()) is not None:
                to = _STANDARD_ERROR if message.stream == _STANDARD_ERROR else 1
                await loop.sock_sendall(ends[to], message.data)
        for number in (1, _STANDARD_ERROR):
            ends[number].close()

    async def _pump_input(self) -> None:
        theirs = self._ends[0][1]
        loop = asyncio.get_running_loop()
        with suppress(OSError, aiohttp.ClientError, RuntimeError):
            while data := await loop.sock_recv(theirs, _CHUNK):
                await self.stream.write_in(data)
            self._end_stream()

    def _end_stream(self) -> None:
        # The public method closes the other direction as well.
        response = self.stream._resp  # noqa: SLF001 - as said.
        if response is not None and response.connection is not None:
            transport = response.connection.transport
            if transport is not None and transport.can_write_eof():
                transport.write_eof()

    async def _kill(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the session."""
        with suppress(aiodocker.DockerError, aiohttp.ClientError, OSError):
            argv = ["/bin/sh", "-c", KILL_SCRIPT, self.mark, str(int(number))]
            killing = await self.container.exec(argv, stdout=True, stderr=True)
            await killing.start(detach=True)

    async def _clear(self) -> None:
        await asyncio.gather(self._output, self._input, return_exceptions=True)
        await self._kill(signal.SIGKILL)
        await self.stream.close()
        for _, theirs in self._ends:
            theirs.close()
        await self.engine.close()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_log_failure(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _log_failure(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except (aiodocker.DockerError, aiohttp.ClientError, OSError) as error:
        log.info("the engine did not do something for a guest", error=str(error))


async def addresses_in_group(container: str, name: str) -> list[str]:
    """Return the addresses of a name in a container's group. Raises CannotAttach."""
    engine = aiodocker.Docker()
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            return await _addresses(engine, container, name)
    except (aiodocker.DockerError, aiohttp.ClientError, OSError) as error:
        raise CannotAttach(f"The engine does not tell who {name} is: {error}") from error
    finally:
        await engine.close()


async def _addresses(engine: aiodocker.Docker, container: str, name: str) -> list[str]:
    details = await engine.containers.container(container).show()
    group = details["Config"]["Labels"].get(containers.GROUP)
    if group is None:
        return []
    network = await (await engine.networks.get(group)).show()
    ends: dict[str, Any] = network.get("Containers") or {}
    # The network has the addresses, and each container its names.
    known = await asyncio.gather(*(_aliases(engine, member, group) for member in ends))
    found = zip(ends.values(), known, strict=True)
    return sorted(end["IPv4Address"].partition("/")[0] for end, names in found if name in names)


async def _aliases(engine: aiodocker.Docker, container: str, group: str) -> list[str]:
    try:
        details = await engine.containers.container(container).show()
    except aiodocker.DockerError as error:
        if error.status == _NOT_FOUND:
            return []
        raise
    end = details["NetworkSettings"]["Networks"].get(group) or {}
    return list(end.get("Aliases") or ())
