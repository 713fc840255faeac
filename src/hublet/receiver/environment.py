"""Environment of the receiver: its one door to time, randomness and variables."""

import os
import secrets
import time

_TWO_DAYS = 48 * 3600.0
_FIRST_PORT = 7860
_LOOPBACK = "127.0.0.1"
_ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - a space is reached from outside or not at all.
# What the environment of a space says of its hardware when that is cpu-basic.
_CPU_BASIC = {"ACCELERATOR": "none", "CPU_CORES": "2", "MEMORY": "16Gi"}


def now() -> float:
    """Return seconds since 1970."""
    return time.time()


def monotonic() -> float:
    return time.monotonic()


def new_id() -> str:
    return secrets.token_hex(12)


def _variable(name: str) -> str | None:
    return os.environ.get(name) or None


def webhook_secret() -> str | None:
    return _variable("WEBHOOK_SECRET")


def space_host() -> str | None:
    """Return the name under which a space is reached over TLS, if this is one."""
    return _variable("SPACE_HOST")


def idle_shutdown_seconds() -> float | None:
    """Return how long a server may rest here; interface 6.2: 48 hours on a cpu-basic space."""
    said = {name: os.environ.get(name) for name in _CPU_BASIC}
    return _TWO_DAYS if _variable("SPACE_ID") and said == _CPU_BASIC else None


def server_name() -> str:
    # The names of these variables are those of the server that this one stands in for.
    default = _ALL_INTERFACES if _variable("SPACE_ID") else _LOOPBACK
    return _variable("GRADIO_SERVER_NAME") or default


def server_ports() -> range:
    """Return the ports to try, in order."""
    first = int(_variable("GRADIO_SERVER_PORT") or _FIRST_PORT)
    return range(first, first + int(_variable("GRADIO_NUM_PORTS") or 100))
