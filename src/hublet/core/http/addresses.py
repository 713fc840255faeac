"""Whose request it is: the peer's address, or what a trusted proxy says of it."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

Network = IPv4Network | IPv6Network


def client_address(peer: str, forwarded_for: str | None, *, trusted: Sequence[Network]) -> str:
    """Walk the proxies from the nearest on; the first that is not trusted is the client.

    A value that is not an address ends the walk, so a forged header changes nothing.
    """
    if not trusted or forwarded_for is None or not _is_trusted(peer, trusted):
        return peer
    address = peer
    for hop in reversed(forwarded_for.split(",")):
        candidate = hop.strip()
        try:
            ip_address(candidate)
        except ValueError:
            return address
        address = candidate
        if not _is_trusted(address, trusted):
            return address
    return address


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in trusted)
