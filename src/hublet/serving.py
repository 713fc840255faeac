"""Server process of a hub: database, application and worker."""

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from hublet.app import create_application, with_edge
from hublet.core.config import ServerSettings, Settings
from hublet.core.database import Database
from hublet.core.http.connection_guard import ConnectionGuard
from hublet.core.http.server_protocol import ServerProtocol
from hublet.core.logs import AccessLog
from hublet.core.metric_samples import MetricSampler
from hublet.core.metrics import Metrics
from hublet.core.startup import CannotStart, open_hub
from hublet.core.switches import SiteWatcher
from hublet.core.tracing import trace_requests, tracing
from hublet.first_start import FirstAdministrator, prepare
from hublet.gateway.ssh.listener import listen as listen_for_ssh
from hublet.gateway.ssh.listener import run_gateway
from hublet.storage.workers import processes
from hublet.worker import Worker

LOCAL_IPV6 = "::1"
_FLUSH_SECONDS = 0.2
_WAITING_CONNECTIONS = 2048
_ACCEPTED_AT_ONCE = 64
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


@asynccontextmanager
async def running(
    database: Database, worker: Worker, *, ssh: socket.socket | None = None
) -> AsyncIterator[ASGIApp]:
    """Yield the application with everything that runs beside it; stop that at the end."""
    app = create_application(database)
    logs = database.hub.settings.logs
    access_log = AccessLog(logs) if logs.access else None
    app.state.callers.start()
    flushing = asyncio.create_task(_keep_flushing(access_log), name="access-log")
    app.state.metrics.registry.register(worker.deliveries.metrics)
    site = SiteWatcher(database)
    await site.start()
    sampler = MetricSampler(database, app.state.metrics, name=worker.name)
    sampler.start()
    worker.start()
    try:
        async with run_gateway(database, ssh, find_attach_point=app.state.jobs.attach_point):
            yield trace_requests(with_edge(app, access_log=access_log))
    finally:
        await sampler.stop()
        await worker.stop()
        await site.stop()
        await processes.stop()
        await app.state.ports.stop()
        await app.state.callers.stop()
        await app.state.downloads.stop()
        flushing.cancel()
        with suppress(asyncio.CancelledError):
            await flushing


async def _keep_flushing(access_log: AccessLog | None) -> None:
    try:
        while access_log is not None:
            await asyncio.sleep(_FLUSH_SECONDS)
            access_log.flush()
    finally:
        if access_log is not None:
            access_log.flush()


def _spare_collections() -> None:
    """Collect garbage from now on, but rarely, and never look at what the start has made."""
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()
    gc.enable()


def server_config(app: ASGIApp, settings: ServerSettings) -> uvicorn.Config:
    """Return how the hub is served."""
    protocol: Any = partial(ServerProtocol, guard=ConnectionGuard(settings))
    return uvicorn.Config(
        app,
        http=protocol,
        # Websockets are passed on to jobs; a library that happens to be there would take them.
        ws="none",
        lifespan="off",
        # How many connections asyncio accepts before anything else runs: a flood must not get all
        # open files before the guard sees one of them.
        backlog=_ACCEPTED_AT_ONCE,
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
    """Uvicorn as a hub needs it: it leaves signals to us, and tells when it answers."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, *, when_ready: Callable[[], None]
    ) -> None:
        super().__init__(server_config(app, settings))
        self._when_ready = when_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal again before the worker could hand back its tasks.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_WAITING_CONNECTIONS)
        _spare_collections()
        self._when_ready()


async def serve(
    settings: Settings,
    listeners: Sequence[socket.socket],
    *,
    when_ready: Callable[[FirstAdministrator | None], None],
) -> None:
    """Serve until SIGINT or SIGTERM; finish or hand back what is in flight."""
    ssh, settings = listen_for_ssh(settings)
    async with tracing(settings), open_hub(settings) as database:
        first = await prepare(database)
        async with running(database, Worker(database), ssh=ssh) as app:
            server = Server(app, settings.server, when_ready=lambda: when_ready(first))
            await server.serve(sockets=list(listeners))


async def run_worker(settings: Settings, *, when_ready: Callable[[str], None]) -> None:
    """Run only a worker, until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with tracing(settings), open_hub(settings) as database:
        await prepare(database)
        worker = Worker(database)
        metrics = Metrics()
        metrics.registry.register(worker.deliveries.metrics)
        sampler, site = MetricSampler(database, metrics, name=worker.name), SiteWatcher(database)
        await site.start()
        sampler.start()
        worker.start()
        _spare_collections()
        when_ready(worker.name)
        try:
            await stop.wait()
        finally:
            await sampler.stop()
            await worker.stop()
            await site.stop()
            await processes.stop()
