"""The port of a server: the one that was asked for, or the first free one of the usual."""

import socket

from hublet.receiver import surroundings

_BACKLOG = 2048


def listen(name: str | None, port: int | None) -> socket.socket:
    """Return a socket that listens; what was not asked for is as usual in these surroundings."""
    host = (name or surroundings.server_name()).strip("[]")
    ports = surroundings.server_ports() if port is None else range(port, port + 1)
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


def place_of(listener: socket.socket) -> str:
    """Return the host and port under which this machine reaches it."""
    address: tuple[str, int] = listener.getsockname()[:2]
    host, port = address
    # An address that means every one of this machine is no place to go to.
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound.
    return f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
