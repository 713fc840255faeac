"""Helper program that makes sockets in a job's network namespace and passes them to the hub.

A process with threads cannot join a user namespace, and a hub that is not root has to. It imports
the standard library and no other module of the hub. Its arguments are the descriptors of the
network and of the channel, and the number of sockets for each family.
"""

import array
import ctypes
import fcntl
import os
import socket
import sys

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
OWNER = 0xB701
FAMILIES = (socket.AF_INET, socket.AF_INET6)


def join(libc: ctypes.CDLL, descriptor: int, kind: int) -> None:
    if libc.setns(descriptor, kind) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main() -> None:
    network, channel, count = (int(argument) for argument in sys.argv[1:])
    libc = ctypes.CDLL(None, use_errno=True)
    # A network namespace belongs to a user namespace, whose members may join it.
    join(libc, fcntl.ioctl(network, OWNER), NEW_USER)
    join(libc, network, NEW_NETWORK)
    made = [socket.socket(family) for family in FAMILIES for _ in range(count)]
    numbers = array.array("i", [each.fileno() for each in made])
    with socket.socket(fileno=channel) as out:
        out.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])


if __name__ == "__main__":
    main()
