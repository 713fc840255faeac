"""A machine for tests: a network namespace for the hub, and one that stands for the world.

The hub's code finds itself in the first, so nothing here touches the machine that runs the tests.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import pytest

from hublet.runtime.networks import namespaces
from hublet.runtime.networks.membership import NetworkAttachment, find_obstacle
from hublet.runtime.networks.namespaces import ip
from hublet.runtime.networks.records import NetworkPolicy
from patience import SOON_SECONDS

# Of the machine, public and private; of the world.
PUBLIC, PRIVATE, WORLD = "11.22.33.1", "10.50.0.1", "11.22.33.2"
STRANGER, NEIGHBOUR, METADATA = "10.99.0.2", "192.168.7.7", "169.254.169.254"

_T = TypeVar("_T")


def a_policy(**changes: Any) -> NetworkPolicy:
    """What the settings say by default; name only what the test is about."""
    defaults: dict[str, Any] = {"range": IPv4Network("10.213.0.0/16"), "outbound": False}
    return NetworkPolicy(**(defaults | changes))


_obstacle = find_obstacle(a_policy(outbound=True))

needs_networks = pytest.mark.skipif(
    _obstacle is not None, reason=f"no networks can be made here: {_obstacle}"
)


@dataclass(slots=True)
class Machine:
    hub: int
    world: int
    _open: list[socket.socket] = field(default_factory=list)

    def listens(self, address: str, *ports: int, at: int | None = None) -> None:
        """Have somebody answer there with the address that they see, over TCP and UDP."""
        place = self.hub if at is None else at
        for port in ports:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                listener = within(place, partial(_bound, address, port, kind))
                self._open.append(listener)
                threading.Thread(target=_answer, args=(listener,), daemon=True).start()

    def interfaces(self) -> set[str]:
        """What there is on the machine beside its own, when what ends has ended."""
        own = {"lo", "wan0"}
        return within(self.hub, lambda: {name for _, name in socket.if_nameindex()}) - own

    def tables(self) -> list[str]:
        """The tables of its firewall."""
        return within(self.hub, lambda: _output("nft", "list", "tables")).splitlines()

    def close(self) -> None:
        for listener in self._open:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@contextmanager
def a_machine() -> Iterator[Machine]:
    """Put this thread, and what it starts, on a machine of its own."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    world = namespaces.run_in_thread(namespaces.create_namespace)
    hub = namespaces.create_namespace()
    machine = Machine(hub, world)
    try:
        _connect(machine)
        yield machine
    finally:
        machine.close()
        namespaces.enter(before)
        for descriptor in (before, world, hub):
            os.close(descriptor)


def _connect(machine: Machine) -> None:
    there = namespaces.path_of(machine.world)
    ip(
        [
            "link set lo up",
            f"link add name wan0 type veth peer name eth0 netns {there}",
            "link set wan0 up",
            f"addr add {PUBLIC}/24 dev wan0",
            f"addr add {PRIVATE}/32 dev wan0",
        ]
    )
    # Nobody in the world knows a way to the addresses of jobs.
    addresses = [f"{each}/32" for each in (STRANGER, NEIGHBOUR, METADATA)]
    lines = [f"addr add {each} dev eth0" for each in (f"{WORLD}/24", *addresses)]
    within(machine.world, lambda: ip(["link set lo up", "link set eth0 up", *lines]))
    ip([f"route add default via {WORLD}"])


def within(place: int, work: Callable[[], _T]) -> _T:
    """Do something in another namespace."""

    def inside() -> _T:
        namespaces.enter(place)
        return work()

    return namespaces.run_in_thread(inside)


def _bound(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    listener = socket.socket(socket.AF_INET, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    if kind == socket.SOCK_STREAM:
        listener.listen()
    return listener


def _answer(listener: socket.socket) -> None:
    """Tell everybody the address that they come from."""
    try:
        while True:
            if listener.type == socket.SOCK_STREAM:
                there, (address, _) = listener.accept()
                with there:
                    there.sendall(address.encode())
            else:
                _, guest = listener.recvfrom(64)
                if guest is None:  # It was closed.
                    return
                listener.sendto(guest[0].encode(), guest)
    except OSError:
        return


# What a job runs to see whom it reaches: by TCP, or with udp: before the address.
REACH = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor

def look(target):
    kind = socket.SOCK_DGRAM if target.startswith("udp:") else socket.SOCK_STREAM
    host, _, port = target.removeprefix("udp:").rpartition(":")
    try:
        with socket.socket(socket.AF_INET, kind) as there:
            there.settimeout(2)
            there.connect((host, int(port)))
            there.send(b"?")
            return f"{target} answers {there.recv(64).decode()}"
    except OSError:
        return f"{target} is out of reach"

with ThreadPoolExecutor(16) as all_at_once:
    print(*all_at_once.map(look, sys.argv[1:]), sep="\\n", flush=True)
"""


def reached(place: NetworkAttachment, *targets: str) -> list[str]:
    """Return what a process with every right would reach from where a job is."""
    return run_inside(place, sys.executable, "-c", REACH, *targets).splitlines()


def run_inside(place: NetworkAttachment, *argv: str) -> str:
    return _output("nsenter", f"--net={place.namespace_path}", *argv)


def _output(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def soon(is_so: Callable[[], bool], *, why: str) -> None:
    """Wait for what the kernel, or the hub, does a moment later."""
    deadline = monotonic() + SOON_SECONDS
    while not is_so():
        assert monotonic() < deadline, why
        sleep(0.02)


def names_in(path: Path) -> dict[str, list[str]]:
    """Return the addresses of each name in a file of names."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        address, *names = line.split()
        for name in names:
            found.setdefault(name, []).append(address)
    return found
