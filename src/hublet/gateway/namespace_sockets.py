"""Sockets in the network namespace of a job: one that was made there stays there."""

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from hublet.gateway import namespace_program
from hublet.gateway.errors import CannotJoinNetwork
from hublet.runtime.attempt_folder import ProcessIdentity
from hublet.runtime.records import AttachPoint

_PROGRAM = Path(namespace_program.__file__)
_HELPER_SECONDS = 10.0
# How many sockets a helper makes at once, and for how many attempts they are cached.
_BATCH, _ATTEMPTS = 16, 32

SocketKey = tuple[ProcessIdentity, socket.AddressFamily]


@dataclass(slots=True)
class NamespaceSockets:
    """Makes sockets in jobs' networks: in a thread if the hub may join them, else by a helper program."""

    # A thread of its own, so that no other code ever runs in a job's network.
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="networks")
    )
    _needs_helper: bool = False
    _lock: Lock = field(default_factory=Lock)
    _ready: OrderedDict[SocketKey, list[socket.socket]] = field(default_factory=OrderedDict)

    def socket_in(self, attach_point: AttachPoint, family: socket.AddressFamily) -> socket.socket:
        """Return a socket that is not connected yet. Blocks. Raises CannotJoinNetwork."""
        try:
            network = os.open(
                f"/proc/{attach_point.process.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC
            )
        except OSError as error:
            raise CannotJoinNetwork(str(error.strerror)) from error
        try:
            # The namespace is the job's only if its process ran all the time.
            if not attach_point.process.lives():
                raise CannotJoinNetwork("it has just ended")
            return self._socket(network, attach_point, family)
        finally:
            os.close(network)

    def close(self) -> None:
        self._thread.shutdown(wait=False)
        for made in self._ready.values():
            for each in made:
                each.close()
        self._ready.clear()

    def _socket(
        self, network: int, attach_point: AttachPoint, family: socket.AddressFamily
    ) -> socket.socket:
        if not self._needs_helper:
            try:
                return self._thread.submit(_socket_in_namespace, network, family).result()
            except PermissionError:
                self._needs_helper = True
        return self._socket_from_helper(network, attach_point.process, family)

    def _socket_from_helper(
        self, network: int, process: ProcessIdentity, family: socket.AddressFamily
    ) -> socket.socket:
        with self._lock:
            if not self._ready.get((process, family)):
                for each, made in zip(
                    namespace_program.FAMILIES, _from_helper(network, _BATCH), strict=True
                ):
                    self._ready.setdefault((process, each), []).extend(made)
            while len(self._ready) > _ATTEMPTS:
                for old in self._ready.popitem(last=False)[1]:
                    old.close()
            return self._ready[process, family].pop()


def _socket_in_namespace(network: int, family: socket.AddressFamily) -> socket.socket:
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _join(libc, network)
        try:
            return socket.socket(family)
        finally:
            _join(libc, own)
    finally:
        os.close(own)


def _join(libc: ctypes.CDLL, network: int) -> None:
    if libc.setns(network, namespace_program.NEW_NETWORK) < 0:
        number = ctypes.get_errno()
        kind = PermissionError if number == errno.EPERM else OSError
        raise kind(number, os.strerror(number))


def _from_helper(network: int, count: int) -> list[list[socket.socket]]:
    """Return sockets of each family, made by the helper program."""
    ours, theirs = socket.socketpair()
    ours.settimeout(_HELPER_SECONDS)
    with ours, theirs:
        done = subprocess.run(  # noqa: S603 - this very interpreter, with a program of ours.
            [sys.executable, "-I", "-S", _PROGRAM, str(network), str(theirs.fileno()), str(count)],
            pass_fds=(network, theirs.fileno()),
            env={},
            check=False,
            capture_output=True,
            text=True,
            timeout=_HELPER_SECONDS,
        )
        if done.returncode:
            raise CannotJoinNetwork(done.stderr.strip().rpartition("\n")[2])
        _, numbers, _, _ = socket.recv_fds(ours, 1, 2 * count)
    made = [socket.socket(fileno=number) for number in numbers]
    return [made[:count], made[count:]]
