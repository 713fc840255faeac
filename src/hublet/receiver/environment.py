"""Environment of the receiver: the only module that reads time, randomness and variables."""

import os
import secrets
import time

_TWO_DAYS = 48 * 3600.0
_FIRST_PORT = 7860
_LOOPBACK = "127.0.0.1"
_ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - a space is reached from outside or not at all.
# The variables of a space on cpu-basic hardware.
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
    """Return the public host name of the space, if this is one."""
    return _variable("SPACE_HOST")


def idle_shutdown_seconds() -> float | None:
    """Return how long a server may be idle; interface 6.2: 48 hours on a cpu-basic space."""
    hardware = {name: os.environ.get(name) for name in _CPU_BASIC}
    return _TWO_DAYS if _variable("SPACE_ID") and hardware == _CPU_BASIC else None


def server_name() -> str:
    # The variables of gradio, whose server this one replaces.
    default = _ALL_INTERFACES if _variable("SPACE_ID") else _LOOPBACK
    return _variable("GRADIO_SERVER_NAME") or default


def server_ports() -> range:
    """Return the ports to try, in order."""
    first = int(_variable("GRADIO_SERVER_PORT") or _FIRST_PORT)
    return range(first, first + int(_variable("GRADIO_NUM_PORTS") or 100))
