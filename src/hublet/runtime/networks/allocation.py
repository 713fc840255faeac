"""Allocation of a network to an attempt, and the test whether this machine can have any."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network

from hublet.runtime.attempt_folder import read_status
from hublet.runtime.errors import CannotRun, CannotRunYet, NetworkFailed
from hublet.runtime.networks import firewall, namespaces, veth
from hublet.runtime.networks.addresses import free_address
from hublet.runtime.networks.membership import NetworkAttachment, Networks
from hublet.runtime.networks.namespaces import find_program, nft
from hublet.runtime.networks.records import EgressEndpoints, NetworkPolicy
from hublet.runtime.records import LaunchOrder

_NEEDS_ROOT = "it needs a hub that runs as root"


def find_obstacle(policy: NetworkPolicy) -> str | None:
    """Say what makes networks impossible here; None: nothing does. Blocks."""
    if os.geteuid():
        return _NEEDS_ROOT
    try:
        find_program("ip")
        if policy.outbound:
            find_program("nft")
        namespaces.run_in_thread(lambda: _try_out(policy))
    except (NetworkFailed, OSError) as error:
        return str(error)
    return None


def _try_out(policy: NetworkPolicy) -> None:
    block = IPv4Network((policy.range.network_address, 30))
    plan = veth.VethPlan(
        block=block,
        address=free_address(block, ()),
        is_group=True,
        rules=firewall.job_table(policy, EgressEndpoints(), block=block) if policy.outbound else "",
    )
    veth.connect(plan).close()
    if policy.outbound:
        # This thread has a machine of its own from here on.
        os.close(namespaces.create_namespace())
        nft(firewall.machine_table("trial", policy, EgressEndpoints()))


@contextmanager
def allocated_network(
    networks: Networks | None, order: LaunchOrder
) -> Iterator[NetworkAttachment | None]:
    """Hold a place for an attempt until its shim does; None: it has no network of this kind.

    An attempt that does not begin leaves again. Raises CannotRun or CannotRunYet.
    """
    is_needed = networks is not None and (order.group or networks.policy.outbound)
    if networks is None or not is_needed:
        yield None
        return
    place = _join(networks, order)
    try:
        yield place
    except BaseException:
        # A shim that took too long to answer may have begun all the same.
        if read_status(order.folder) is None:
            networks.leave(order.folder)
        raise
    finally:
        place.close()


def _join(networks: Networks, order: LaunchOrder) -> NetworkAttachment:
    group = order.group
    names = (order.hostname, *(group.names if group else ()))
    try:
        return networks.join(order.folder, names=names, group=group.key if group else None)
    except (NetworkFailed, OSError) as error:
        if (reason := find_obstacle(networks.policy)) is not None:
            raise CannotRun(f"There are no networks for jobs here: {reason}.") from error
        raise CannotRunYet(f"Its network could not be made: {error}.") from error
