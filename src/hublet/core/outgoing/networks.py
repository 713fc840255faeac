"""Address policy of outgoing calls: a table of special networks, and what an operator opens."""

from collections.abc import Iterator
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Self

from hublet.core.config import Network, Settings
from hublet.core.dataclasses import dataclass

Address = IPv4Address | IPv6Address


class Tier(StrEnum):
    allowed = "allowed"
    # Opened by any entry of `outgoing.allow` that holds the address.
    private = "private"
    # Opened only by an entry that names this network or a part of it: 0.0.0.0/0 opens none.
    forbidden = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressVerdict:
    tier: Tier
    reason: str

    @property
    def allowed(self) -> bool:
        return self.tier is Tier.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRule:
    network: Network
    verdict: AddressVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """What the operator of this hub opens beside the public network."""

    allow: tuple[Network, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        opened = _LOOPBACK if settings.server.test_mode else ()
        return cls(allow=settings.outgoing.allow + opened)


_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_ALLOWED = AddressVerdict(tier=Tier.allowed, reason="public")


def _rules(tier: Tier, reason: str, *networks: str) -> list[NetworkRule]:
    verdict = AddressVerdict(tier=tier, reason=reason)
    return [NetworkRule(network=ip_network(network), verdict=verdict) for network in networks]


# The registries of special addresses (IANA) and the metadata services of the clouds, which lie
# also in private and even in public networks. Every row that holds an address must be opened.
_TABLE = [
    *_rules(
        Tier.forbidden,
        "metadata service",
        *("169.254.169.254/32", "169.254.170.2/32", "168.63.129.16/32", "100.100.100.200/32"),
        *("192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128"),
        "fd00:c1::a9fe:a9fe/128",
    ),
    *_rules(Tier.forbidden, "loopback", "127.0.0.0/8", "::1/128"),
    # To a kernel, "no address" is this machine.
    *_rules(Tier.forbidden, "unspecified", "0.0.0.0/8", "::/128"),
    *_rules(Tier.forbidden, "link-local", "169.254.0.0/16", "fe80::/10"),
    *_rules(Tier.forbidden, "multicast", "224.0.0.0/4", "ff00::/8"),
    *_rules(Tier.forbidden, "broadcast", "255.255.255.255/32"),
    *_rules(
        Tier.forbidden,
        "documentation",
        *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    ),
    *_rules(
        Tier.private,
        "private network",
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
        *("fc00::/7", "fec0::/10"),
    ),
    # Protocol assignments, 6to4 and its relays, Teredo, benchmarks.
    *_rules(
        Tier.forbidden,
        "reserved",
        *("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "2001::/23", "2002::/16"),
    ),
    # Unassigned: of IPv6 all but 2000::/3 and the networks above.
    *_rules(
        Tier.forbidden,
        "reserved",
        *("240.0.0.0/4", "::/8", "100::/8", "200::/7", "400::/6", "800::/5", "1000::/4"),
        *("4000::/2", "8000::/2", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9"),
    ),
]
# These carry nothing but the IPv4 address in them, which alone is judged.
_TRANSPARENT = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# How far to the right of an IPv6 address of this network the IPv4 address stands, in bits, and
# what it is combined with: Teredo (RFC 4380) writes the inverse of the client's address.
_CARRIERS: tuple[tuple[IPv6Network, int, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0, 0),
    (IPv6Network("::ffff:0:0:0/96"), 0, 0),
    (IPv6Network("::/96"), 0, 0),
    (IPv6Network("64:ff9b::/96"), 0, 0),
    (IPv6Network("64:ff9b:1::/48"), 0, 0),
    (IPv6Network("2002::/16"), 80, 0),
    (IPv6Network("2001::/32"), 64, 0),
    (IPv6Network("2001::/32"), 0, 0xFFFFFFFF),
)
# ISATAP (RFC 5214) marks the right half of any address; two bits of the mark may differ.
_ISATAP_MARK, _ISATAP_MASK = 0x00005EFE, 0xFCFFFFFF


def classify(address: Address | str, policy: AddressPolicy | None = None) -> AddressVerdict:
    """Judge an address and every IPv4 address that it carries; the worst of them counts.

    An operator who opens a tunnel's network does not open what hides inside it.
    """
    address = ip_address(address) if isinstance(address, str) else address
    allow = () if policy is None else policy.allow
    worst = _ALLOWED
    for layer in _carried_addresses(address):
        for row in _TABLE:
            if layer not in row.network or _is_opened(layer, row, allow):
                continue
            if row.verdict.tier is Tier.forbidden:
                return row.verdict
            worst = row.verdict
    return worst


def networks_of(tier: Tier) -> list[Network]:
    """Return the networks of the table that are closed like this, for those who filter by them."""
    return [row.network for row in _TABLE if row.verdict.tier is tier]


def _carried_addresses(address: Address) -> Iterator[Address]:
    """Yield what the address carries, then the address itself: the inner reason tells more."""
    if isinstance(address, IPv4Address):
        yield address
        return
    number = int(address)
    # These two look like carriers of IPv4 and are none.
    if number > 1:
        for network, shift, inverse in _CARRIERS:
            if address in network:
                yield IPv4Address((number >> shift & 0xFFFFFFFF) ^ inverse)
        if number >> 32 & _ISATAP_MASK == _ISATAP_MARK:
            yield IPv4Address(number & 0xFFFFFFFF)
    if not any(address in network for network in _TRANSPARENT):
        yield address


def _is_opened(address: Address, row: NetworkRule, allow: tuple[Network, ...]) -> bool:
    return any(
        address in entry and (row.verdict.tier is Tier.private or is_subnet(entry, row.network))
        for entry in allow
    )


def is_subnet(entry: Network, network: Network) -> bool:
    return (
        entry.version == network.version
        and entry.prefixlen >= network.prefixlen
        and entry.network_address in network
    )
