"""Others in the network group of a job, reached from where the job is."""

import asyncio
import os
import socket

from hublet.jobs.environment import group_hostname, group_prefix
from hublet.jobs.reaching.dialing.namespaces import Doors
from hublet.jobs.records import Job
from hublet.jobs.runners.entering.visits import Wish, enter
from hublet.jobs.runners.records import Inside

_SECONDS = 10.0
# More than the names of the largest group take.
_MOST_BYTES = 1 << 16


def is_of_group(job: Job, name: str) -> bool:
    """Tell whether a name can be one of the job's network group."""
    if job.spec.network is None:
        return False
    return name == group_hostname(job) or name.startswith(group_prefix(job))


async def connect(inside: Inside, name: str, port: int) -> socket.socket | None:
    """Return a socket to whoever has the name and answers, made in the job's own network."""
    doors = Doors()
    try:
        for address in await _addresses(inside, name):
            made = await asyncio.to_thread(doors.socket_in, inside, socket.AF_INET)
            made.setblocking(False)
            try:
                async with asyncio.timeout(_SECONDS):
                    await asyncio.get_running_loop().sock_connect(made, (address, port))
            except OSError:  # A timeout is one, too.
                made.close()
            else:
                return made
        return None
    finally:
        doors.close()


async def _addresses(inside: Inside, name: str) -> list[str]:
    """Look a name up where the job itself would: groups are lines of its /etc/hosts."""
    wish = Wish(argv=("/bin/cat", "/etc/hosts"), environment={})
    visit = await enter(inside, wish, is_plain=False)
    try:
        await visit.ended()
        lines = os.read(visit.stdout, _MOST_BYTES).decode(errors="replace").splitlines()
    finally:
        visit.close()
    words = [line.split() for line in lines]
    return [found[0] for found in words if name in found[1:]]
