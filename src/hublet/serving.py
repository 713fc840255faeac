"""Runs a whole hub in this process: database, application, worker."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from hublet.app import create_application, with_edge
from hublet.core.config import Settings, safe_database_url
from hublet.core.database import Database, DatabaseUnavailable, open_database
from hublet.core.hub import Hub
from hublet.core.logs import AccessLog
from hublet.core.sealing import KeyRing
from hublet.first_start import FirstAdministrator, prepare
from hublet.worker import Worker

_FLUSH_SECONDS = 0.2


class CannotServe(Exception):
    """The hub cannot start. The message is one sentence that says what to do."""


def load_keys(settings: Settings) -> KeyRing:
    if settings.keys.ring is not None:
        return KeyRing.parse(settings.keys.ring)
    return KeyRing.load_or_create(settings.database.data_dir / "secret.keys")


def open_folder(folder: Path) -> None:
    """Create the data folder, for its owner's eyes only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CannotServe(
            f"The data folder {folder} cannot be written ({error.strerror}): choose another with "
            "--data-dir, or give this user the right to write there."
        ) from error


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        raise CannotServe(
            f"{host}:{port} cannot be used ({getattr(error, 'strerror', None) or error}): choose "
            "another with --host and --port, or stop what listens there."
        ) from error
    return listener


@asynccontextmanager
async def open_hub(settings: Settings) -> AsyncIterator[Database]:
    """Open the data folder, the keys and the database; the schema is not touched."""
    open_folder(settings.database.data_dir)
    hub = Hub(settings=settings, keys=load_keys(settings))
    async with AsyncExitStack() as stack:
        try:
            database = await stack.enter_async_context(open_database(hub))
        except DatabaseUnavailable as error:
            raise CannotServe(
                f"The database {safe_database_url(settings.database_url)} cannot be opened "
                f"({' '.join(error.reason.split())}): see that it runs and lets this user in, or "
                "name another with --database-url."
            ) from error
        yield database


@asynccontextmanager
async def running(database: Database, *, with_worker: bool = True) -> AsyncIterator[ASGIApp]:
    """Yield the application with everything that runs beside it; stop that at the end."""
    app = create_application(database)
    logs = database.hub.settings.logs
    access_log = AccessLog(logs) if logs.access else None
    app.state.callers.start()
    flushing = asyncio.create_task(_keep_flushing(access_log), name="access-log")
    worker = Worker(database) if with_worker else None
    if worker is not None:
        worker.start()
    try:
        yield with_edge(app, access_log=access_log)
    finally:
        if worker is not None:
            await worker.stop()
        await app.state.callers.stop()
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


class _Server(uvicorn.Server):
    """Uvicorn that leaves signals to us, and tells when it answers."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
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
        self._when_ready()


async def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    when_ready: Callable[[FirstAdministrator | None], None],
) -> None:
    """Serve until SIGINT or SIGTERM; finish or hand back what is in flight."""
    async with open_hub(settings) as database:
        first = await prepare(database)
        async with running(database) as app:
            config = uvicorn.Config(
                app,
                http="httptools",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=max(1, round(settings.server.stop_grace_seconds)),
            )
            await _Server(config, lambda: when_ready(first)).serve(sockets=[listener])


async def run_worker(settings: Settings, *, when_ready: Callable[[str], None]) -> None:
    """Run only a worker, until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_hub(settings) as database:
        await prepare(database)
        worker = Worker(database)
        worker.start()
        when_ready(worker.name)
        try:
            await stop.wait()
        finally:
            await worker.stop()
