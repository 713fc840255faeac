"""Address allocation: free blocks for networks, and free addresses in a block."""

import json
import subprocess
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from hublet.runtime.errors import NetworkFailed
from hublet.runtime.networks.namespaces import find_program

# A group has room for 253 members; a single job needs one address beside the gateway's.
_GROUP_PREFIX, _SINGLE_PREFIX = 24, 30


def free_block(
    space: IPv4Network, *, is_group: bool, taken: Collection[IPv4Network]
) -> IPv4Network:
    """Return a free block of the range; groups take theirs from its beginning, others from its end."""
    prefix = max(_GROUP_PREFIX if is_group else _SINGLE_PREFIX, space.prefixlen)
    for block in _blocks(space, prefix, from_end=not is_group):
        if not any(block.overlaps(other) for other in taken):
            return block
    raise NetworkFailed(f"every address of jobs.network_range ({space}) is in use")


def _blocks(space: IPv4Network, prefix: int, *, from_end: bool) -> Iterator[IPv4Network]:
    size = 1 << (32 - prefix)
    first, end = int(space.network_address), int(space.broadcast_address) + 1
    starts = range(first, end, size)
    for start in reversed(starts) if from_end else starts:
        yield IPv4Network((start, prefix))


def gateway_of(block: IPv4Network) -> IPv4Address:
    """Return the address of this machine, where it is on the network."""
    return block.network_address + 1


def free_address(block: IPv4Network, taken: Iterable[IPv4Address]) -> IPv4Address:
    used = {*taken, gateway_of(block)}
    free = next((address for address in block.hosts() if address not in used), None)
    if free is None:
        raise NetworkFailed("every address of its network group is in use")
    return free


def routed_networks() -> list[IPv4Network]:
    """Return the networks that this machine has routes to, beside the default route."""
    listed = subprocess.run(  # noqa: S603 - a fixed program with fixed arguments.
        [find_program("ip"), "-json", "-4", "route", "show", "table", "all"],
        check=False,
        capture_output=True,
        text=True,
    )
    named = [route["dst"] for route in json.loads(listed.stdout or "[]") if "dst" in route]
    return [IPv4Network(name) for name in named if name != "default"]
