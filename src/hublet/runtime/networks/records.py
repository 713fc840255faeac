"""Records of networks: policy of a hub, endpoints open to jobs, members of a network."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Self

from hublet.core.config import Settings
from hublet.core.light_dataclasses import dataclass
from hublet.runtime.attempt_folder import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """What jobs with a network of their own may reach beside each other."""

    # Where their addresses come from.
    range: IPv4Network
    outbound: bool
    # Private networks that are open to them, when anything outside is.
    allow: tuple[IPv4Network, ...] = ()
    # Who knows names for them; none: those of this machine.
    nameservers: tuple[IPv4Address, ...] = ()
    # Where the hub itself is to be found.
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
    """Single addresses that a job may reach though they lie in networks that it may not."""

    nameservers: tuple[IPv4Address, ...] = ()
    hub_host: str = ""
    hub_port: int = 0
    hub_addresses: tuple[IPv4Address, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMember:
    """An attempt with an address."""

    # Of the attempt: whether it lives is told there.
    folder: Path
    block: IPv4Network
    address: IPv4Address
    # The first is its own; others may have the same ones beside that.
    names: tuple[str, ...]
    # The number of the namespace in which the cables of a group meet; 0: it is in no group.
    switch: int
    # Who makes it, and the descriptor that keeps the switch there until the shim does.
    maker: ProcessIdentity
    descriptor: int
