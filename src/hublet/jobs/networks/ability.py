"""Whether this machine lets the hub make networks: tried out where it leaves no trace."""

import os
from ipaddress import IPv4Network

from hublet.jobs.networks import cables, namespaces, rules
from hublet.jobs.networks.addresses import free_address
from hublet.jobs.networks.commands import found, nft
from hublet.jobs.networks.records import NetworkFailed, Outside, Policy

_ROOT = "it needs a hub that runs as root"


def obstacle(policy: Policy) -> str | None:
    """Say what makes networks impossible here; None: nothing does. Blocks."""
    if os.geteuid():
        return _ROOT
    try:
        found("ip")
        if policy.outbound:
            found("nft")
        namespaces.apart(lambda: _try_out(policy))
    except (NetworkFailed, OSError) as error:
        return str(error)
    return None


def _try_out(policy: Policy) -> None:
    block = IPv4Network((policy.range.network_address, 30))
    plan = cables.Plan(
        block=block,
        address=free_address(block, ()),
        is_group=True,
        rules=rules.for_job(policy, Outside(), block=block) if policy.outbound else "",
    )
    cables.connect(plan).close()
    if policy.outbound:
        # This thread has a machine of its own from here on.
        os.close(namespaces.made())
        nft(rules.for_machine("trial", policy, Outside()))
