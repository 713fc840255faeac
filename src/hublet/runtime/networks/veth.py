"""Network namespaces of jobs, and the veth pairs and bridges between them.

The veth pairs of a group meet in a bridge in a namespace of its own, the switch, which has nothing
else: neither the addresses nor the rules of the machine, nor another group. Each member's shim runs
in it, so the switch exists as long as there are members, and ends with the last of them.
"""

import os
import socket
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network

from hublet.core.dataclasses import dataclass
from hublet.runtime.networks import namespaces
from hublet.runtime.networks.addresses import gateway_of
from hublet.runtime.networks.namespaces import ip, nft
from hublet.runtime.shim.system import write

_BRIDGE, _UPLINK, _JOB_INTERFACE = "bridge0", "uplink0", "eth0"


@dataclass(frozen=True, slots=True, kw_only=True)
class VethPlan:
    block: IPv4Network
    address: IPv4Address
    is_group: bool
    # Descriptor of the group's switch, where the group has members; the handles own it from now on.
    switch: int | None = None
    # Of the members of the group.
    addresses: Collection[IPv4Address] = ()
    # Name of the machine's end of the uplink; None: the network has no way outside.
    uplink: str | None = None
    # Rules of nft for the namespace of the job.
    rules: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceHandles:
    """Descriptors of namespaces, which keep them alive until a shim does."""

    job: int
    # Of a group; None: the job is in none.
    switch: int | None

    @property
    def switch_number(self) -> int:
        """Inode of the switch's namespace; 0: there is no switch."""
        return 0 if self.switch is None else os.fstat(self.switch).st_ino

    def close(self) -> None:
        for descriptor in (self.job, self.switch):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)


def connect(plan: VethPlan) -> NamespaceHandles:
    """Make a namespace with an address for a job. Blocks. Raises NetworkFailed, or OSError."""
    if plan.uplink and plan.switch is None:
        _remove_old(plan.uplink)
    handles = namespaces.run_in_thread(lambda: _connect(plan))
    try:
        if plan.uplink:
            gateway = f"{gateway_of(plan.block)}/{plan.block.prefixlen}"
            ip([*_up_lines(plan.uplink), f"addr replace {gateway} dev {plan.uplink}"])
    except BaseException:
        handles.close()
        raise
    return handles


def _remove_old(uplink: str) -> None:
    """Remove the uplink of a network that has ended, but whose namespace somebody still holds."""
    if uplink in _interfaces():
        ip([f"link del {uplink}"])


def _connect(plan: VethPlan) -> NamespaceHandles:
    job = namespaces.create_namespace()
    switch: int | None = None
    try:
        if plan.is_group:
            switch = _join_switch(plan, namespaces.path_of(job))
            namespaces.enter(job)
        else:
            ip([_veth_line(_JOB_INTERFACE, str(plan.uplink), namespaces.hub_namespace())])
        ip(_job_lines(plan))
        # Of the namespace that this thread is in: without it a job may not listen on low ports.
        write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        if plan.rules:
            nft(plan.rules)
    except BaseException:
        NamespaceHandles(job=job, switch=switch).close()
        raise
    return NamespaceHandles(job=job, switch=switch)


def _join_switch(plan: VethPlan, job: str) -> int:
    """Connect a job to the switch of its group; this thread stays in the switch's namespace."""
    if plan.switch is None:
        switch = namespaces.create_namespace()
    else:
        switch = plan.switch
        namespaces.enter(switch)
    try:
        _add_port(plan, job)
    except BaseException:
        os.close(switch)
        raise
    return switch


def _add_port(plan: VethPlan, job: str) -> None:
    port, lines = _port_name(plan.address), list[str]()
    present = _interfaces()
    if _BRIDGE not in present:
        lines += [f"link add name {_BRIDGE} type bridge", *_up_lines(_BRIDGE)]
    if plan.uplink and _UPLINK not in present:
        lines += [
            _veth_line(_UPLINK, plan.uplink, namespaces.hub_namespace()),
            *_port_lines(_UPLINK),
        ]
    # Ports of members that have ended, but whose namespaces somebody still holds.
    used = {_port_name(address) for address in plan.addresses}
    old = {name for name in present if name.startswith("job") and name not in used}
    lines += [f"link del {name}" for name in sorted(old)]
    ip([*lines, _veth_line(port, _JOB_INTERFACE, job), *_port_lines(port)])


def _job_lines(plan: VethPlan) -> list[str]:
    address = f"{plan.address}/{plan.block.prefixlen}"
    lines = [
        "link set lo up",
        *_up_lines(_JOB_INTERFACE),
        f"addr add {address} dev {_JOB_INTERFACE}",
    ]
    return [*lines, f"route add default via {gateway_of(plan.block)}"] if plan.uplink else lines


def _veth_line(near: str, far: str, there: str) -> str:
    return f"link add name {near} type veth peer name {far} netns {there}"


def _port_lines(name: str) -> list[str]:
    return [f"link set {name} addrgenmode none", f"link set {name} master {_BRIDGE} up"]


def _up_lines(name: str) -> list[str]:
    # Without generated addresses: IPv6 would add some at once.
    return [f"link set {name} addrgenmode none", f"link set {name} up"]


def _port_name(address: IPv4Address) -> str:
    return f"job{int(address) & 0xFFFFFF:06x}"


def _interfaces() -> set[str]:
    """Return the interfaces in the namespace of this thread."""
    return {name for _, name in socket.if_nameindex()}
