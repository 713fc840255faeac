"""Launch of a server: its options, its port, its threads, and how it stops."""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec
from types import FrameType
from typing import Any, Self
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from hublet.receiver import environment
from hublet.receiver.threads import Threads

log = logging.getLogger("hublet.receiver")

_BACKLOG = 2048
_START_SECONDS = 30.0
# How often the idle time of the server is checked.
_POLL_SECONDS = 0.25
# How long requests in flight may take when the server stops.
_STOP_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The options of gradio that the receiver honours."""

    server_name: str | None = None
    server_port: int | None = None
    root_path: str | None = None
    quiet: bool = False
    ssl_keyfile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile_password: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        known = {each.name for each in fields(cls)}
        if given.get("share"):
            log.warning("There is no tunnel here: `share` is left aside, the server is local.")
        others = sorted(set(given) - known - {"share"})
        if others:
            log.warning("Options for gradio alone are left aside: %s.", ", ".join(others))
        return cls(**{name: value for name, value in given.items() if name in known})


class Launch:
    """One run of a server, from its socket to its end."""

    def __init__(
        self,
        app: ASGIApp,
        options: LaunchOptions,
        *,
        paths: Sequence[str],
        is_idle: Callable[[], bool] | None = None,
        threads: Threads | None = None,
    ) -> None:
        self._options = options
        self._paths = paths
        self._is_idle = is_idle
        self._threads = threads or Threads()
        self._socket = _listen(options.server_name, options.server_port)
        self._server = uvicorn.Server(_config(app, options))
        self._thread = threading.Thread(target=self._serve_in_thread, name="webhooks", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self._options.ssl_certfile is None else "https"
        return f"{scheme}://{_socket_address(self._socket)}"

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Serve in a thread; return when requests are accepted."""
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        if self._failure is not None:
            raise self._failure

    def run(self) -> None:
        """Serve until the end: a signal, too long an idle time, or `stop` from another thread."""
        # The handlers come first: whoever reads that the server is ready may send a signal.
        with _stop_on_signals(self.ask_to_stop, signal.SIGINT, signal.SIGTERM):
            self.start()
            while self._thread.is_alive():
                self._thread.join(_POLL_SECONDS)

    def ask_to_stop(self) -> None:
        """Stop after the requests in flight; when called again, stop at once."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_START_SECONDS)

    def _serve_in_thread(self) -> None:
        try:
            self.serve()
        except Exception as error:  # noqa: BLE001 - `start` raises it.
            self._failure = error
        finally:
            self._ready.set()

    def serve(self) -> None:
        """Serve in this thread. Starts no other: at the end of a script Python allows none."""
        loop = (self._server.config.get_loop_factory() or asyncio.new_event_loop)()
        try:
            loop.set_default_executor(self._threads)
            loop.run_until_complete(self._serve())
        finally:
            loop.run_until_complete(_cancel_all_tasks())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _serve(self) -> None:
        watch = asyncio.create_task(self._watch())
        try:
            await self._server.serve(sockets=[self._socket])
        except SystemExit:
            # uvicorn exits when the lifespan fails to start, after it has logged why.
            sentence = "The server could not start; the reason stands in the log."
            raise RuntimeError(sentence) from None
        finally:
            watch.cancel()
            self._socket.close()

    async def _watch(self) -> None:
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it.
            await asyncio.sleep(0.001)
        self._print_endpoints()
        self._ready.set()
        if self._is_idle is None:
            return
        while not self._is_idle():  # noqa: ASYNC110 - time itself is waited for.
            await asyncio.sleep(_POLL_SECONDS)
        log.warning("Nothing came for so long that this server stops.")
        self.ask_to_stop()

    def _print_endpoints(self) -> None:
        if self._options.quiet:
            return
        host = environment.space_host()
        address = self.url if host is None else f"https://{host}"
        lines = [f"  - POST {address}{path}" for path in self._paths]
        text = "\n".join(["\nWebhooks are correctly setup and ready to use:", *lines])
        print(f"{text}\nCreate webhooks that point there: hf webhooks create --help", flush=True)  # noqa: T201 - as the public library does


async def _cancel_all_tasks() -> None:
    """Cancel the tasks that a handler or a page left running."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _protocol() -> Any:
    """Return the hub's own HTTP protocol; beside another hub's library its parser may be missing."""
    if find_spec("httptools") is None:
        return "auto"
    from hublet.core.lean_protocol import LeanProtocol  # noqa: PLC0415 - as above

    return LeanProtocol


def _config(app: ASGIApp, options: LaunchOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_protocol(),
        lifespan="on",
        # The script configures logging itself; requests are listed on the landing page.
        log_config=None,
        access_log=False,
        server_header=False,
        # Only the landing page needs them, and reads them itself.
        proxy_headers=False,
        # Gradio accepts a whole URL too.
        root_path=urlsplit(options.root_path or "").path.rstrip("/"),
        timeout_graceful_shutdown=_STOP_SECONDS,
        ssl_keyfile=options.ssl_keyfile,
        ssl_certfile=options.ssl_certfile,
        ssl_keyfile_password=options.ssl_keyfile_password,
    )


@contextmanager
def _stop_on_signals(stop: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """Call `stop` at a signal, if this is the main thread, which alone receives signals."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(name: str | None, port: int | None) -> socket.socket:
    """Return a listening socket; a missing name or port comes from the environment."""
    host = (name or environment.server_name()).strip("[]")
    ports = environment.server_ports() if port is None else range(port, port + 1)
    family, *_ = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    failure: OSError | None = None
    for each in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, each))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            failure = error
        else:
            return listener
    raise OSError(
        f"{host} has no free port in {ports[0]}-{ports[-1]}: name another in launch(server_port=…) "
        "or GRADIO_SERVER_PORT (0 is any free one)."
    ) from failure


def _socket_address(listener: socket.socket) -> str:
    """Return the host and port under which this machine reaches a listening socket."""
    address: tuple[str, int] = listener.getsockname()[:2]
    host, port = address
    # Nobody can connect to the address that means every interface.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound.
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
