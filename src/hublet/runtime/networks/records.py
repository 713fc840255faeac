"""Records of networks: policy of a hub, endpoints open to jobs, members of a network."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Self

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.runtime.attempt_folder import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """What jobs with a network of their own may reach beside each other."""

    # The range of their addresses.
    range: IPv4Network
    outbound: bool
    # Private networks that are open to them, if outbound connections are.
    allow: tuple[IPv4Network, ...] = ()
    # Name servers for them; none: those of this machine.
    nameservers: tuple[IPv4Address, ...] = ()
    # URL of the hub, which is open to them too.
    base_url: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            range=settings.jobs.network_range,
            outbound=settings.jobs.network == "outbound",
            allow=settings.jobs.network_allow,
            nameservers=settings.jobs.nameservers or (),
            base_url=settings.base_url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressEndpoints:
    """Single addresses that a job may reach inside networks that are closed to it."""

    nameservers: tuple[IPv4Address, ...] = ()
    hub_host: str = ""
    hub_port: int = 0
    hub_addresses: tuple[IPv4Address, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMember:
    """An attempt with an address."""

    # Of the attempt; its status file says whether the attempt runs.
    folder: Path
    block: IPv4Network
    address: IPv4Address
    # The first is its own; members may share the others.
    names: tuple[str, ...]
    # Inode of the namespace with the bridge of the group; 0: it is in no group.
    switch: int
    # The process that launches it, and its descriptor that keeps the switch until the shim does.
    maker: ProcessIdentity
    descriptor: int
