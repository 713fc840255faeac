"""Relay before a server that counts what clients send through it."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

_PIECE = 1 << 18


class Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream_port: int, *, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Relayed)
        self.upstream_port = upstream_port
        self._sent = 0
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        port: int = self.server_address[1]
        return port

    @property
    def sent(self) -> int:
        """How many bytes have come from clients: bodies and heads."""
        with self._lock:
            return self._sent

    def count(self, size: int) -> None:
        with self._lock:
            self._sent += size


class _Relayed(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        relay, client = cast("Relay", self.server), cast("socket.socket", self.request)
        with socket.create_connection(("127.0.0.1", relay.upstream_port)) as upstream:
            back = threading.Thread(target=_pass_on, args=(upstream, client), daemon=True)
            back.start()
            for size in _passed(client, upstream):
                relay.count(size)
            back.join()


def _passed(source: socket.socket, target: socket.socket) -> Iterator[int]:
    """Pass everything on to the end; yield the length of each piece."""
    piece = bytearray(_PIECE)
    try:
        while size := source.recv_into(piece):
            target.sendall(memoryview(piece)[:size])
            yield size
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone; the other shall not wait for it.
        for each in (source, target):
            each.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    for _ in _passed(source, target):
        pass


@contextmanager
def relaying(relay: Relay) -> Iterator[Relay]:
    with relay:
        thread = threading.Thread(target=relay.serve_forever)
        thread.start()
        try:
            yield relay
        finally:
            relay.shutdown()
            thread.join()
