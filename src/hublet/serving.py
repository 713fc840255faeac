"""Server process of a hub: database, application and worker."""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from hublet.core.config import ServerSettings, Settings
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.heartbeat import Heartbeat
from hublet.core.http.connection_guard import ConnectionGuard
from hublet.core.http.server_protocol import ServerProtocol
from hublet.core.http.startup_gate import StartupGate
from hublet.core.hub import ProcessState
from hublet.core.ids import new_object_id
from hublet.core.logs import AccessLog
from hublet.core.metric_group import MetricGroup, answering
from hublet.core.metric_samples import MetricSampler
from hublet.core.metrics import Metrics
from hublet.core.startup import CannotStart, open_hub
from hublet.core.switches import SiteWatcher
from hublet.core.tracing import trace_requests, tracing
from hublet.first_start import (
    FirstAdministrator,
    check_folder,
    prepare,
    provide_administrator,
)
from hublet.gateway.ports.hosts import PortHosts
from hublet.gateway.ssh.listener import run_gateway
from hublet.storage.object_store import probe_store
from hublet.storage.workers import processes
from hublet.worker import Worker

LOCAL_IPV6 = "::1"
_ANY_HOST = frozenset({"0.0.0.0", "::"})  # noqa: S104 - names of all addresses
_FLUSH_SECONDS = 0.2
_WAITING_CONNECTIONS = 2048
_ACCEPTED_AT_ONCE = 64
# How often two threads take turns at Python while one of them imports the application. Each statement of
# SQLite gives up its turn, and would wait for Python's own 5 ms to get it back.
_TURN_SECONDS = 0.0005
# New objects between two garbage collections. A request or a delivery makes dozens, and nearly all
# are freed by their reference count: Python's own 700 would cost an eighth of the time.
_COLLECT_AFTER = (50_000, 20, 100)


def listen(host: str, port: int) -> list[socket.socket]:
    """Return a socket for the address, and where it is 127.0.0.1 one for ::1 if that is free.

    Browsers look for localhost there first, and must not find another program.
    """
    try:
        listeners = [_listener(host, port)]
    except (OSError, OverflowError) as error:
        raise CannotStart(
            f"{host}:{port} cannot be used ({getattr(error, 'strerror', None) or error}): choose "
            "another with --host and --port, or stop what listens there."
        ) from error
    if host == "127.0.0.1":
        with suppress(OSError):
            listeners.append(_listener(LOCAL_IPV6, port_of(listeners)))
    return listeners


def port_of(listeners: Sequence[socket.socket]) -> int:
    port: int = listeners[0].getsockname()[1]
    return port


def _listener(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_WAITING_CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    return listener


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """What one process is among those that a command has started: its name, and what it runs."""

    name: str
    role: str
    # Where it answers the others about its metrics, and where they answer, by name.
    metrics_listener: socket.socket | None = None
    metrics_paths: Mapping[str, str] = field(default_factory=dict)


def alone(role: str) -> GroupMember:
    """Return what a process is that was started by itself."""
    return GroupMember(name={"all": "hub"}.get(role, role), role=role)


@asynccontextmanager
async def running(
    database: Database,
    worker: Worker | None,
    *,
    ssh: socket.socket | None = None,
    member: GroupMember | None = None,
) -> AsyncIterator[ASGIApp]:
    """Yield the application with everything that runs beside it; stop that at the end.

    The worker is only measured here: `working` runs it, and it may have begun before.
    """
    from hublet.app import create_application, with_edge  # noqa: PLC0415 - see `load_application`

    app = create_application(database)
    logs = database.hub.settings.logs
    access_log = AccessLog(logs) if logs.access else None
    app.state.callers.start()
    flushing = asyncio.create_task(_keep_flushing(access_log), name="access-log")
    try:
        async with (
            reporting(database, worker, app.state.metrics, member=member),
            run_gateway(
                database,
                ssh,
                find_attach_point=app.state.jobs.attach_point,
                remote=app.state.tunnels,
            ),
        ):
            yield trace_requests(with_edge(app, access_log=access_log))
    finally:
        await app.state.ports.stop()
        await app.state.sql.stop()
        await app.state.callers.stop()
        await app.state.downloads.stop()
        flushing.cancel()
        with suppress(asyncio.CancelledError):
            await flushing


@asynccontextmanager
async def working(database: Database, worker: Worker | None) -> AsyncIterator[None]:
    """Run what every process of a hub has, and the worker if it has one, during the body."""
    async with AsyncExitStack() as stack:
        site = SiteWatcher(database)
        stack.push_async_callback(processes.stop)
        await site.start()
        stack.push_async_callback(site.stop)
        if worker is not None:
            worker.start()
            stack.push_async_callback(worker.stop)
        yield


@asynccontextmanager
async def reporting(
    database: Database,
    worker: Worker | None,
    metrics: Metrics,
    *,
    member: GroupMember | None = None,
) -> AsyncIterator[None]:
    """Tell the other processes and the operator about this one during the body."""
    async with AsyncExitStack() as stack:
        if worker is not None:
            metrics.registry.register(worker.deliveries.metrics)
        name = new_object_id() if worker is None else worker.name
        sampler = MetricSampler(database, metrics, name=name)
        sampler.start()
        stack.push_async_callback(sampler.stop)
        if member is not None:
            heartbeat = Heartbeat(database, role=member.role, name=member.name)
            await heartbeat.start()
            stack.push_async_callback(heartbeat.stop)
            database.hub.process.when_draining = heartbeat.announce
        if member is not None and member.metrics_listener is not None:
            metrics.group = MetricGroup(member.name, member.metrics_paths)
            await stack.enter_async_context(answering(member.metrics_listener, metrics.registry))
        yield


async def _keep_flushing(access_log: AccessLog | None) -> None:
    try:
        while access_log is not None:
            await asyncio.sleep(_FLUSH_SECONDS)
            access_log.flush()
    finally:
        if access_log is not None:
            access_log.flush()


async def load_application() -> None:
    """Import the application in a thread: half of a start, during which the worker works already.

    An import that fails ends the process, as it would at its beginning.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        await asyncio.to_thread(import_module, "hublet.app")
    finally:
        sys.setswitchinterval(before)


def spare_collections() -> None:
    """Collect garbage from now on, but rarely, and never look at what the start has made."""
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()
    gc.enable()


def server_config(
    app: ASGIApp, settings: ServerSettings, guard: ConnectionGuard | None = None
) -> uvicorn.Config:
    """Return how the hub is served."""
    protocol: Any = partial(
        ServerProtocol,
        guard=guard or ConnectionGuard(settings),
        answer_now=getattr(app, "answer_now", None),
    )
    return uvicorn.Config(
        app,
        http=protocol,
        # Uvicorn would look for `async def`.
        interface="asgi3",
        # Websockets are passed on to jobs; a library that happens to be there would take them.
        ws="none",
        lifespan="off",
        # How many connections asyncio accepts before anything else runs: a flood must not get all
        # open files before the guard sees one of them.
        backlog=_ACCEPTED_AT_ONCE if settings.processes == 1 else 1,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        # Uvicorn declares whole seconds for both, and takes any.
        timeout_keep_alive=cast("int", settings.keep_alive_seconds),
        timeout_graceful_shutdown=max(1, round(settings.stop_grace_seconds)),
    )


class Server(uvicorn.Server):
    """Uvicorn as a hub needs it: it leaves signals to us, drains, and tells when it listens."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        when_listening: Callable[[], None] = lambda: None,
        process: ProcessState | None = None,
    ) -> None:
        self._guard = ConnectionGuard(settings)
        super().__init__(server_config(app, settings, self._guard))
        self._when_listening = when_listening
        self._process = process or ProcessState()
        self._drain_seconds = settings.drain_seconds

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal again before the worker could hand back its tasks.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Say that this process is not ready any more, serve on for a while, then stop.

        A second signal ends the wait.
        """
        is_first = not self._process.is_draining
        self._guard.is_draining = True
        self._process.drain()
        if is_first and self._drain_seconds:
            asyncio.get_running_loop().call_later(self._drain_seconds, self._end_drain)
        else:
            super().handle_exit(sig, frame)

    def _end_drain(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_WAITING_CONNECTIONS)
        self._when_listening()


async def serve(
    settings: Settings,
    listeners: Sequence[socket.socket],
    *,
    when_ready: Callable[[FirstAdministrator | None], None],
    ssh: socket.socket | None = None,
    member: GroupMember | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; finish or hand back what is in flight."""
    member = member or alone(settings.server.role)
    settings = _with_node_url(settings)
    await asyncio.to_thread(probe_store, settings)
    async with tracing(settings), open_hub(settings) as database:
        await prepare(database, creates_administrator=False)
        await check_folder(database)
        worker = Worker(database) if member.role == "all" else None
        async with working(database, worker):
            gate = StartupGate(settings, is_of_job=PortHosts(settings).contains)
            server = Server(gate, settings.server, process=database.hub.process)
            serving = asyncio.create_task(server.serve(sockets=list(listeners)), name="server")
            try:
                await load_application()
                # A signal may have come meanwhile.
                if not server.should_exit:
                    async with running(database, worker, ssh=ssh, member=member) as app:
                        # Not before nothing can fail any more: the password is shown once.
                        first = await provide_administrator(database)
                        spare_collections()
                        gate.open(app)
                        when_ready(first)
                        await serving
            finally:
                gate.close()
                server.should_exit = True
                await serving


def _with_node_url(settings: Settings) -> Settings:
    """Return settings that say where the other machines reach this one: where it listens."""
    server = settings.server
    if server.node_url is not None:
        return settings
    host = server.host
    if host in _ANY_HOST:
        host = server.node_name or socket.gethostname()
    url = f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"
    return replace(settings, server=replace(server, node_url=url))


async def run_worker(
    settings: Settings,
    *,
    when_ready: Callable[[str], None],
    listeners: Sequence[socket.socket] = (),
    member: GroupMember | None = None,
) -> None:
    """Run only a worker, until SIGINT or SIGTERM; `listeners` tell its health and metrics."""
    from hublet.app import (  # noqa: PLC0415 - see `load_application`
        create_worker_application,
        with_worker_edge,
    )

    if listeners or member is not None:
        # Its own port, or that of the processes beside it, lets others reach its jobs.
        settings = _with_node_url(settings)
    await asyncio.to_thread(probe_store, settings)
    async with tracing(settings), open_hub(settings) as database:
        await prepare(database, creates_administrator=False)
        await check_folder(database)
        worker, app = Worker(database), create_worker_application(database)
        member = member or alone("worker")

        def when_listening() -> None:
            spare_collections()
            when_ready(worker.name)

        async with (
            working(database, worker),
            reporting(database, worker, app.state.metrics, member=member),
        ):
            if listeners:
                server = Server(
                    with_worker_edge(app),
                    settings.server,
                    when_listening=when_listening,
                    process=database.hub.process,
                )
                app.state.callers.start()
                try:
                    await server.serve(sockets=list(listeners))
                finally:
                    await app.state.ports.stop()
                    await app.state.callers.stop()
                return
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            when_listening()
            await stop.wait()
