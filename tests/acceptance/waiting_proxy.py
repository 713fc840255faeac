"""A door in front of a hub, as operators have one: it waits while the hub behind it restarts."""

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from processes import READY_SECONDS

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
        """Pass on what is said until somebody has enough.

        What a hub did not answer before it went is asked again of the next one.
        """
        hub: socket.socket | None = None
        unanswered = b""
        with caller:
            while True:
                if hub is None and (hub := self._connect(unanswered)) is None:
                    return
                for each in select.select([caller, hub], [], [])[0]:
                    data = _heard(each)
                    if each is hub:
                        unanswered = b"" if data else unanswered
                        is_over = not data and not unanswered
                    else:
                        unanswered += data
                        is_over = not data
                    if is_over:
                        hub.close()
                        return
                    # A balancer may live longer than the nodes behind it, and would refuse.
                    is_for_the_next = each is caller and self._target is None
                    receiver = hub if each is caller else caller
                    if not data or is_for_the_next or not _said(receiver, data):
                        hub.close()
                        hub = None
                        break

    def _connect(self, unanswered: bytes) -> socket.socket | None:
        """Return a connection to the hub, which has been told what is still to be answered."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError):
                if self._target is not None:
                    hub = socket.create_connection(self._target)
                    if _said(hub, unanswered):
                        return hub
            time.sleep(0.05)
        return None


def _heard(source: socket.socket) -> bytes:
    try:
        return source.recv(_CHUNK)
    except OSError:
        return b""


def _said(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


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
