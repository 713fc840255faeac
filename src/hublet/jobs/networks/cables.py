"""Namespaces of jobs and the cables between them.

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
from hublet.jobs.networks import namespaces
from hublet.jobs.networks.addresses import gateway_of
from hublet.jobs.networks.commands import ip, nft
from hublet.jobs.runners.shim.system import write

_BRIDGE, _UPLINK, _INSIDE = "bridge0", "uplink0", "eth0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
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
class Ends:
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


def connect(plan: Plan) -> Ends:
    """Make a namespace with an address for a job. Blocks. Raises NetworkFailed, or OSError."""
    if plan.uplink and plan.switch is None:
        _remove_old(plan.uplink)
    ends = namespaces.apart(lambda: _connect(plan))
    try:
        if plan.uplink:
            gateway = f"{gateway_of(plan.block)}/{plan.block.prefixlen}"
            ip([*_up(plan.uplink), f"addr replace {gateway} dev {plan.uplink}"])
    except BaseException:
        ends.close()
        raise
    return ends


def _remove_old(uplink: str) -> None:
    """Remove the cable of a network that has ended, but that somebody still looks at."""
    if uplink in _interfaces():
        ip([f"link del {uplink}"])


def _connect(plan: Plan) -> Ends:
    inside = namespaces.made()
    switch: int | None = None
    try:
        if plan.is_group:
            switch = _join_switch(plan, namespaces.path_of(inside))
            namespaces.enter(inside)
        else:
            ip([_cable(_INSIDE, str(plan.uplink), namespaces.of_the_hub())])
        ip(_settings(plan))
        # Of the namespace that this thread is in: a job has no right to low ports otherwise.
        write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        if plan.rules:
            nft(plan.rules)
    except BaseException:
        Ends(inside=inside, switch=switch).close()
        raise
    return Ends(inside=inside, switch=switch)


def _join_switch(plan: Plan, inside: str) -> int:
    """Put the cable of a job into the switch of its group; this thread stays there."""
    if plan.switch is None:
        switch = namespaces.made()
    else:
        switch = plan.switch
        namespaces.enter(switch)
    try:
        _plug(plan, inside)
    except BaseException:
        os.close(switch)
        raise
    return switch


def _plug(plan: Plan, inside: str) -> None:
    port, lines = _port(plan.address), list[str]()
    present = _interfaces()
    if _BRIDGE not in present:
        lines += [f"link add name {_BRIDGE} type bridge", *_up(_BRIDGE)]
    if plan.uplink and _UPLINK not in present:
        lines += [_cable(_UPLINK, plan.uplink, namespaces.of_the_hub()), *_plugged(_UPLINK)]
    # Ends of cables whose members have ended, but whose namespaces somebody still looks into.
    used = {_port(address) for address in plan.addresses}
    old = {name for name in present if name.startswith("job") and name not in used}
    lines += [f"link del {name}" for name in sorted(old)]
    ip([*lines, _cable(port, _INSIDE, inside), *_plugged(port)])


def _settings(plan: Plan) -> list[str]:
    address = f"{plan.address}/{plan.block.prefixlen}"
    lines = ["link set lo up", *_up(_INSIDE), f"addr add {address} dev {_INSIDE}"]
    return [*lines, f"route add default via {gateway_of(plan.block)}"] if plan.uplink else lines


def _cable(near: str, far: str, there: str) -> str:
    return f"link add name {near} type veth peer name {far} netns {there}"


def _plugged(name: str) -> list[str]:
    return [f"link set {name} addrgenmode none", f"link set {name} master {_BRIDGE} up"]


def _up(name: str) -> list[str]:
    # Without addresses of its own making: IPv6 would give it some at once.
    return [f"link set {name} addrgenmode none", f"link set {name} up"]


def _port(address: IPv4Address) -> str:
    return f"job{int(address) & 0xFFFFFF:06x}"


def _interfaces() -> set[str]:
    """Return what is in the namespace of this thread."""
    return {name for _, name in socket.if_nameindex()}
