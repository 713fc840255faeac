"""Network namespaces of jobs, and the veth pairs and bridges between them.

The cables of a group meet in a bridge in a namespace of its own, the switch, in which nothing else
is: neither the addresses nor the rules of the machine, nor another group. Each member's shim lives
there, so the switch is there as long as there are members, and ends with the last of them.
"""

import os
import socket
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network

from hublet.core.light_dataclasses import dataclass
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
    # Of the group, where others are in it already; from now on that of the ends.
    switch: int | None = None
    # Of those who are in it.
    addresses: Collection[IPv4Address] = ()
    # What the machine calls its end of the way outside; None: there is no such way.
    uplink: str | None = None
    # What the job may send where, for nft.
    rules: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceHandles:
    """Descriptors of namespaces, which keep them there until a shim does."""

    inside: int
    # Of a group.
    switch: int | None

    @property
    def number(self) -> int:
        """What the kernel calls the switch; 0: there is none."""
        return 0 if self.switch is None else os.fstat(self.switch).st_ino

    def close(self) -> None:
        for descriptor in (self.inside, self.switch):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)


def connect(plan: VethPlan) -> NamespaceHandles:
    """Make a namespace with an address for a job. Blocks. Raises NetworkFailed, or OSError."""
    if plan.uplink and plan.switch is None:
        _remove_old(plan.uplink)
    ends = namespaces.run_in_thread(lambda: _connect(plan))
    try:
        if plan.uplink:
            gateway = f"{gateway_of(plan.block)}/{plan.block.prefixlen}"
            ip([*_up_lines(plan.uplink), f"addr replace {gateway} dev {plan.uplink}"])
    except BaseException:
        ends.close()
        raise
    return ends


def _remove_old(uplink: str) -> None:
    """Remove the cable of a network that has ended, but that somebody still looks at."""
    if uplink in _interfaces():
        ip([f"link del {uplink}"])


def _connect(plan: VethPlan) -> NamespaceHandles:
    inside = namespaces.create_namespace()
    switch: int | None = None
    try:
        if plan.is_group:
            switch = _join_switch(plan, namespaces.path_of(inside))
            namespaces.enter(inside)
        else:
            ip([_veth_line(_JOB_INTERFACE, str(plan.uplink), namespaces.hub_namespace())])
        ip(_job_lines(plan))
        # Of the namespace that this thread is in: a job has no right to low ports otherwise.
        write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        if plan.rules:
            nft(plan.rules)
    except BaseException:
        NamespaceHandles(inside=inside, switch=switch).close()
        raise
    return NamespaceHandles(inside=inside, switch=switch)


def _join_switch(plan: VethPlan, inside: str) -> int:
    """Put the cable of a job into the switch of its group; this thread stays there."""
    if plan.switch is None:
        switch = namespaces.create_namespace()
    else:
        switch = plan.switch
        namespaces.enter(switch)
    try:
        _add_port(plan, inside)
    except BaseException:
        os.close(switch)
        raise
    return switch


def _add_port(plan: VethPlan, inside: str) -> None:
    port, lines = _port_name(plan.address), list[str]()
    present = _interfaces()
    if _BRIDGE not in present:
        lines += [f"link add name {_BRIDGE} type bridge", *_up_lines(_BRIDGE)]
    if plan.uplink and _UPLINK not in present:
        lines += [
            _veth_line(_UPLINK, plan.uplink, namespaces.hub_namespace()),
            *_port_lines(_UPLINK),
        ]
    # Ends of cables whose members have ended, but whose namespaces somebody still looks into.
    used = {_port_name(address) for address in plan.addresses}
    old = {name for name in present if name.startswith("job") and name not in used}
    lines += [f"link del {name}" for name in sorted(old)]
    ip([*lines, _veth_line(port, _JOB_INTERFACE, inside), *_port_lines(port)])


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
    # Without addresses of its own making: IPv6 would give it some at once.
    return [f"link set {name} addrgenmode none", f"link set {name} up"]


def _port_name(address: IPv4Address) -> str:
    return f"job{int(address) & 0xFFFFFF:06x}"


def _interfaces() -> set[str]:
    """Return what is in the namespace of this thread."""
    return {name for _, name in socket.if_nameindex()}
