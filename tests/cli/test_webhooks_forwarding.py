"""What a program on this machine answers to what is forwarded to it."""

import socket
import threading
from collections.abc import Iterator

import pytest

from hublet.cli.webhooks.forwarding import send
from hublet.client.webhooks import Delivery

DELIVERY: Delivery = {
    "id": "a" * 24,
    "state": "pending",
    "attempts": 0,
    "createdAt": "2026-11-15T01:44:56.000Z",
}


@pytest.fixture
def breaking_off() -> Iterator[str]:
    """A program that dies in the middle of its answer."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + b"5\r\nhel")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        thread.join()


def test_an_answer_that_is_broken_off_is_none(breaking_off: str) -> None:
    sent = send(breaking_off, DELIVERY, {"event": {}}, secret=None)

    assert (sent.status, sent.reason, sent.is_good) == (None, "the connection broke", False)
