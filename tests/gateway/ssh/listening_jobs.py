"""Jobs that listen, for those who reach them through SSH."""

import socket
import sys

_PROGRAM = """
import socket, sys
with socket.create_server((sys.argv[2], int(sys.argv[1]))) as listener:
    while True:
        made, _ = listener.accept()
        with made:
            said = b""
            while data := made.recv(65536):
                said += data
            made.sendall(b"you said " + said)
"""


def a_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def listens(
    port: int, *, address: str = "127.0.0.1", python: str = sys.executable
) -> tuple[str, ...]:
    return (python, "-c", _PROGRAM, str(port), address)
