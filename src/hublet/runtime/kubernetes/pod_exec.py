"""Exec and port-forward into a pod, over websockets of the cluster."""

import asyncio
import json
import select
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import suppress
from dataclasses import field
from typing import Any

import aiohttp
from lightkube.resources.core_v1 import Pod

from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.runtime.attach.attachments import (
    KILL_SCRIPT,
    SESSION_VARIABLE,
    engine_argv,
    socket_pair,
)
from hublet.runtime.errors import CannotAttach, PortClosed
from hublet.runtime.kubernetes.cluster import CLUSTER_ERRORS, ClusterConnection, text_of
from hublet.runtime.kubernetes.manifests import HUB, JOB_CONTAINER, NAME_PREFIX
from hublet.runtime.records import AttachRequest, TerminalSize

log = get_logger("jobs.ssh")

_EXEC_PROTOCOL, _PORT_PROTOCOL = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE = range(5)
_CLOSE = 255
_CHUNK = 1 << 15
_PORT_DATA, _PORT_ERROR = 0, 1
# Nothing tells that a port is open, but that it is closed is told at once.
_REFUSAL_SECONDS = 0.05
_HANG_UP_SECONDS = 0.5
# A pod is near, and a network policy that drops packets must not be waited for.
_CONNECT_SECONDS = 2.0
# Sets the variables before `--`, then becomes the program after it.
_WITH_VARIABLES = 'while [ "$1" != -- ]; do export "$1"; shift; done; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class ExecFrame:
    """Some bytes of an exec, or its end."""

    channel: int
    data: bytes

    def exit_code(self) -> int:
        """Return the exit code that the last frame tells. Raises CannotAttach."""
        status: dict[str, Any] = json.loads(self.data)
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [each["message"] for each in causes if each.get("reason") == "ExitCode"]
        if not codes:
            raise CannotAttach(f"The cluster says: {status.get('message')}")
        return int(codes[0])


@dataclass(slots=True, kw_only=True)
class PodExec:
    """A program in a container of a pod."""

    websocket: aiohttp.ClientWebSocketResponse

    async def write(self, data: bytes) -> None:
        await self.websocket.send_bytes(bytes([_STDIN]) + data)

    async def end_input(self) -> None:
        await self.websocket.send_bytes(bytes([_CLOSE, _STDIN]))

    async def resize(self, size: TerminalSize) -> None:
        told = json.dumps({"Width": size[0], "Height": size[1]})
        await self.websocket.send_bytes(bytes([_RESIZE]) + told.encode())

    async def frames(self) -> AsyncIterator[ExecFrame]:
        """Yield the output and, last, the status."""
        async for message in self.websocket:
            if message.type is aiohttp.WSMsgType.BINARY and message.data:
                yield ExecFrame(message.data[0], message.data[1:])

    async def close(self) -> None:
        await self.websocket.close()


async def start_exec(
    cluster: ClusterConnection,
    pod: str,
    argv: Iterable[str],
    *,
    container: str = JOB_CONTAINER,
    has_input: bool = True,
    has_terminal: bool = False,
) -> PodExec:
    """Start a program in a pod. Raises CLUSTER_ERRORS."""
    params = [("command", word) for word in argv]
    params += [("container", container), ("stdout", "true"), ("tty", str(has_terminal).lower())]
    params += [("stdin", str(has_input).lower()), ("stderr", str(not has_terminal).lower())]
    websocket = await cluster.websocket(pod, "exec", params, protocol=_EXEC_PROTOCOL)
    return PodExec(websocket=websocket)


async def run_exec(
    cluster: ClusterConnection, pod: str, argv: Iterable[str], *, container: str = JOB_CONTAINER
) -> tuple[int, bytes]:
    """Run a program in a pod to its end; return its exit code and output."""
    process = await start_exec(cluster, pod, argv, container=container, has_input=False)
    output = bytearray()
    try:
        async for frame in process.frames():
            if frame.channel == _STATUS:
                return frame.exit_code(), bytes(output)
            output += frame.data
    finally:
        await process.close()
    raise CannotAttach("The cluster ended the connection to the pod.")


def is_output(frame: ExecFrame) -> bool:
    return frame.channel == _STDOUT


def is_end(frame: ExecFrame) -> bool:
    return frame.channel == _STATUS


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAttachPoint:
    """Attach point of an attempt in a pod: the cluster carries every byte."""

    cluster: ClusterConnection
    pod: str
    # Label of this hub's pods.
    hub: str
    # Whether the hub reaches the addresses of pods.
    has_addresses: bool = False

    async def find_peers(self, name: str) -> list[str]:
        """Return the pods behind a host name of its group. Raises CannotAttach."""
        labels: dict[str, Any] = {HUB: self.hub, NAME_PREFIX + name: "true"}
        try:
            found = [pod async for pod in self.cluster.api.list(Pod, labels=labels)]
        except CLUSTER_ERRORS as error:
            raise CannotAttach(
                f"The cluster does not tell who {name} is: {text_of(error)}"
            ) from error
        return sorted(pod.metadata.name or "" for pod in found if pod.metadata is not None)

    async def dial(self, port: int) -> socket.socket:
        """Return a socket to a port of the pod. Raises PortClosed or CannotAttach."""
        return await self._dial(self.pod, port)

    async def dial_peer(self, peers: Iterable[str], port: int) -> socket.socket:
        """Return a socket to the first of them that listens. Raises PortClosed."""
        for pod in peers:
            with suppress(PortClosed, CannotAttach):
                return await self._dial(pod, port)
        raise PortClosed

    async def _dial(self, pod: str, port: int) -> socket.socket:
        """Connect at the address of a pod; else through the cluster, which reaches loopback too."""
        if self.has_addresses:
            with suppress(*CLUSTER_ERRORS):
                found = await self.cluster.api.get(Pod, pod)
                address = found.status.podIP if found.status is not None else None
                if address:
                    return await connect(address, port)
        return await _forward(self.cluster, pod, port)

    async def attach(self, request: AttachRequest) -> "PodAttachment":
        """Start a process in the job. Raises CannotAttach."""
        mark = f"{SESSION_VARIABLE}={new_object_id()}"
        variables = [f"{name}={value}" for name, value in request.environment.items()]
        argv = [
            "/bin/sh",
            "-c",
            _WITH_VARIABLES,
            "sh",
            *variables,
            mark,
            "--",
            *engine_argv(request),
        ]
        try:
            process = await start_exec(
                self.cluster, self.pod, argv, has_terminal=request.terminal is not None
            )
        except CLUSTER_ERRORS as error:
            raise CannotAttach(
                f"The job cannot be entered: the cluster says: {text_of(error)}"
            ) from error
        attachment = PodAttachment(point=self, process=process, mark=mark)
        if request.terminal is not None:
            attachment.resize(request.terminal.size)
        return attachment


@dataclass(kw_only=True)
class PodAttachment:
    """The channels of an exec, as three sockets."""

    point: PodAttachPoint
    process: PodExec
    mark: str
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _code: int = -signal.SIGKILL

    def __post_init__(self) -> None:
        # Socket pairs of stdin, stdout and stderr: the client's end, then the pod's.
        self._ends = [socket_pair() for _ in range(3)]
        self.stdin, self.stdout, stderr = (ours.fileno() for ours, _ in self._ends)
        self.stderr: int | None = stderr
        self._output = asyncio.create_task(self._pump_output())
        self._input = asyncio.create_task(self._pump_input())

    def send(self, number: signal.Signals) -> None:
        self._later(self._kill(number))

    def resize(self, size: TerminalSize) -> None:
        self._later(self.process.resize(size))

    def end_input(self) -> None:
        with suppress(OSError):
            self._ends[0][0].shutdown(socket.SHUT_WR)

    async def ended(self) -> int:
        await asyncio.wait([self._output])
        await self._kill(signal.SIGKILL)
        return self._code

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
        with suppress(CannotAttach, *CLUSTER_ERRORS):
            async for frame in self.process.frames():
                if frame.channel == _STATUS:
                    self._code = frame.exit_code()
                    break
                if frame.channel in {_STDOUT, _STDERR} and frame.data:
                    await loop.sock_sendall(self._ends[frame.channel][1], frame.data)
        for number in (_STDOUT, _STDERR):
            self._ends[number][1].close()

    async def _pump_input(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(*CLUSTER_ERRORS):
            while data := await loop.sock_recv(self._ends[0][1], _CHUNK):
                await self.process.write(data)
            await self.process.end_input()

    async def _kill(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the session."""
        argv = ["/bin/sh", "-c", KILL_SCRIPT, self.mark, str(int(number))]
        with suppress(CannotAttach, *CLUSTER_ERRORS):
            await run_exec(self.point.cluster, self.point.pod, argv)

    async def _clear(self) -> None:
        await asyncio.gather(self._output, self._input, return_exceptions=True)
        await self._kill(signal.SIGKILL)
        await self.process.close()
        for _, theirs in self._ends:
            theirs.close()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_log_failure(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _log_failure(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except CLUSTER_ERRORS as error:
        log.info("the cluster did not do something for a guest", error=text_of(error))


# The loop holds tasks weakly: without a reference one may vanish before it is done.
_forwards: set[asyncio.Task[None]] = set()


async def connect(address: str, port: int) -> socket.socket:
    """Return a socket to a port of an address. Raises OSError or TimeoutError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


async def _forward(cluster: ClusterConnection, pod: str, port: int) -> socket.socket:
    """Return one end of a socket pair whose other end is a port of the pod."""
    try:
        websocket = await cluster.websocket(
            pod, "portforward", [("ports", str(port))], protocol=_PORT_PROTOCOL
        )
    except CLUSTER_ERRORS as error:
        raise CannotAttach(f"the cluster says: {text_of(error)}") from error
    forward = _Forward(websocket)
    task = asyncio.create_task(forward.run(), name=f"port-forward-{pod}")
    _forwards.add(task)
    task.add_done_callback(_forwards.discard)
    # The first of the two: a refusal, or bytes of a server that speaks first.
    await asyncio.wait(
        [task, forward.spoke], timeout=_REFUSAL_SECONDS, return_when="FIRST_COMPLETED"
    )
    if forward.is_refused:
        forward.ours.close()
        raise PortClosed
    return forward.ours


class _Forward:
    """Pumps bytes between a websocket and a socket pair until one side ends."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.ours, self._theirs = socket_pair()
        self._websocket = websocket
        self.is_refused = False
        self.spoke: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        pumps = [asyncio.create_task(self._receive()), asyncio.create_task(self._send())]
        try:
            await asyncio.wait(pumps, return_when="FIRST_COMPLETED")
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._theirs.close()
            await self._websocket.close()

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        # The first frame of each channel repeats the number of the port.
        named = set[int]()
        async for message in self._websocket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in named:
                named.add(channel)
            elif channel == _PORT_ERROR:
                self.is_refused = not self.spoke.done()
                return
            elif data:
                if not self.spoke.done():
                    self.spoke.set_result(None)
                await loop.sock_sendall(self._theirs, data)

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._theirs, _CHUNK):
            await self._websocket.send_bytes(bytes([_PORT_DATA]) + data)
        # A websocket has no half-closed state: what the server still sends is awaited while
        # somebody reads it.
        while True:
            if _is_hung_up(self._theirs):
                return
            await asyncio.sleep(_HANG_UP_SECONDS)


def _is_hung_up(made: socket.socket) -> bool:
    """Tell whether the other end of a socket pair is closed, and not only for writing."""
    poll = select.poll()
    poll.register(made, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))
