"""Others in the network group of a job, reached from where the job is."""

import asyncio
import socket
from pathlib import Path

from hublet.jobs.environment import group_hostname, group_prefix
from hublet.jobs.networks.finding import addresses_of
from hublet.jobs.reaching.dialing.namespaces import Doors
from hublet.jobs.records import Job
from hublet.jobs.runners.records import Inside
from hublet.jobs.ssh.records import Running

_SECONDS = 10.0


def is_of_group(job: Job, name: str) -> bool:
    """Tell whether a name can be one of the job's network group."""
    if job.spec.network is None:
        return False
    return name == group_hostname(job) or name.startswith(group_prefix(job))


async def find_addresses(
    running: Running, inside: Inside, name: str, *, data_dir: Path
) -> list[str]:
    """Look a name up where the hub, or its engine, keeps it: the job is not asked for anything."""
    if inside.container is not None:
        # Its library is an extra, and costs a while to load.
        from hublet.jobs.runners.entering.neighbours import (  # noqa: PLC0415 - as above
            addresses_beside,
        )

        return await addresses_beside(inside.container, name)
    return await asyncio.to_thread(addresses_of, data_dir, Path(running.handle), name)


async def connect(inside: Inside, addresses: list[str], port: int) -> socket.socket | None:
    """Return a socket to the first who answers, made in the job's own network."""
    doors = Doors()
    try:
        for address in addresses:
            made = await asyncio.to_thread(doors.socket_in, inside, socket.AF_INET)
            if await _is_connected(made, (address, port)):
                return made
        return None
    finally:
        doors.close()


async def _is_connected(made: socket.socket, address: tuple[str, int]) -> bool:
    """Connect, or close it."""
    made.setblocking(False)
    try:
        async with asyncio.timeout(_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, address)
    except OSError:  # A timeout is one, too.
        made.close()
        return False
    except BaseException:
        made.close()
        raise
    return True
