"""Whether a member still is one, and how to find the switch that its group meets in."""

import os
from collections.abc import Iterator, Sequence

from hublet.jobs.networks.records import Member, NetworkFailed
from hublet.jobs.runners.identity import Identity, boot_id, identity_of, status_of
from hublet.jobs.runners.records import Phase
from hublet.jobs.runners.shim.system import start_time


def this_process() -> Identity:
    return Identity(pid=os.getpid(), start=start_time(os.getpid()), boot=boot_id())


def lives(member: Member) -> bool:
    """Tell whether an attempt goes on; before its shim says anything its maker stands for it."""
    status = status_of(member.folder)
    if status is None:
        return member.maker.lives()
    return status["phase"] != Phase.exited and identity_of(status).lives()


def open_switch(members: Sequence[Member]) -> int | None:
    """Return a descriptor of the switch of a group; None: all have ended in the meantime."""
    # Twice, because the maker may let go of it while its shim takes hold of it.
    for member in (*members, *members):
        for path in _places(member):
            if (found := _opened(path, member.switch)) is not None:
                return found
    if any(map(lives, members)):
        raise NetworkFailed("the network of its group cannot be found")
    return None


def _places(member: Member) -> Iterator[str]:
    status = status_of(member.folder)
    if status is not None and identity_of(status).lives():
        yield f"/proc/{status['pid']}/ns/net"
    if member.maker.lives():
        yield f"/proc/{member.maker.pid}/fd/{member.descriptor}"


def _opened(path: str, number: int) -> int | None:
    """Open a namespace, if it is the one: a process or descriptor may be another's by now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(descriptor).st_ino == number:
        return descriptor
    os.close(descriptor)
    return None
