"""A door in front of a hub, as operators have one: it waits while the hub behind it restarts."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PATIENCE_SECONDS = 30.0
_CHUNK = 65536


class WaitingProxy:
    """Hands every connection to the hub that is named last, as soon as that one answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target: tuple[str, int] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def lead_to(self, address: str | None) -> None:
        """Name the hub; None: there is none for now."""
        host, _, port = (address or "").removeprefix("http://").partition(":")
        self._target = (host, int(port)) if address else None

    def run(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[caller], daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, caller: socket.socket) -> None:
        hub = self._connect()
        if hub is None:
            caller.close()
            return
        threading.Thread(target=_pump, args=[caller, hub], daemon=True).start()
        _pump(hub, caller)
        for end in (caller, hub):
            # To close alone tells the other side nothing while a thread still reads from it.
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _connect(self) -> socket.socket | None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError):
                if self._target is not None:
                    return socket.create_connection(self._target)
            time.sleep(0.05)
        return None


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def waiting_proxy() -> Iterator[WaitingProxy]:
    proxy = WaitingProxy()
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
