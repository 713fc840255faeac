"""Name resolution for jobs: hosts and resolver files, the hub's address, lookup by name."""

import os
import socket
from collections.abc import Iterator, Sequence
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from hublet.runtime.networks.records import EgressEndpoints, NetworkMember, NetworkPolicy
from hublet.runtime.networks.registry import MemberRegistry

HOSTS_FILE = "hosts"
_LOOPBACK = ("127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback")
# The second has the real ones where the first names a server on the machine's loopback.
_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
_PORTS = {"http": 80, "https": 443}


def hosts_text(members: Sequence[NetworkMember], endpoints: EgressEndpoints | None) -> str:
    """Return /etc/hosts for all members of a network: a line for each name of each member.

    A line holds one name, because musl reads no more than 512 bytes of it.
    """
    there = sorted(members, key=lambda member: member.address)
    lines = [*_LOOPBACK, *(f"{member.address} {name}" for member in there for name in member.names)]
    if endpoints and endpoints.hub_host:
        lines += [f"{address} {endpoints.hub_host}" for address in endpoints.hub_addresses]
    return "\n".join(lines) + "\n"


def resolver_text(endpoints: EgressEndpoints | None) -> str:
    """Return /etc/resolv.conf; without a name server an unknown name fails at once."""
    servers = endpoints.nameservers if endpoints else ()
    return "".join(f"nameserver {address}\n" for address in servers) or "options attempts:1\n"


def rewrite_in_place(path: Path, text: str) -> None:
    """Change a file that is mounted into jobs: its inode must stay the same.

    One write, padded to the old length before the file is cut, so that a reader in between finds
    whole lines.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        data = text.encode()
        before = os.fstat(descriptor).st_size
        os.fchmod(descriptor, 0o644)
        os.pwrite(descriptor, data.ljust(before, b"\n"), 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def find_endpoints(policy: NetworkPolicy) -> EgressEndpoints:
    """Resolve the hub and the name servers as this machine would, without loopback addresses."""
    url = urlsplit(policy.base_url)
    host = url.hostname or ""
    addresses = _resolve(host)
    return EgressEndpoints(
        nameservers=policy.nameservers or _nameservers(),
        hub_host="" if _is_ipv4(host) else host,
        hub_port=url.port or _PORTS.get(url.scheme, 0),
        hub_addresses=addresses,
    )


def _nameservers() -> tuple[IPv4Address, ...]:
    for path in _RESOLVERS:
        if servers := tuple(_nameservers_in(path)):
            return servers
    return ()


def _nameservers_in(path: Path) -> Iterator[IPv4Address]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for words in map(str.split, lines):
        match words:
            case ["nameserver", name, *_] if _is_ipv4(name):
                if not IPv4Address(name).is_loopback:
                    yield IPv4Address(name)
            case _:
                continue


def _resolve(host: str) -> tuple[IPv4Address, ...]:
    try:
        answers = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return ()
    found = {IPv4Address(answer[4][0]) for answer in answers}
    return tuple(sorted(address for address in found if not address.is_loopback))


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def addresses_of(data_dir: Path, folder: Path, name: str) -> list[str]:
    """Return the addresses of a name in the network of an attempt; none where it is in no network.

    Read from the hub's file, which is the attempt's /etc/hosts: the job cannot change it, and no
    code of the job runs for a lookup. Blocks.
    """
    registry = MemberRegistry.of(data_dir)
    for network_dir in registry.network_dirs():
        if registry.has(network_dir, folder):
            return _addresses_in(network_dir / HOSTS_FILE, name)
    return []


def _addresses_in(file: Path, name: str) -> list[str]:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        # The last member has just left.
        return []
    words = [line.split() for line in lines]
    return [found[0] for found in words if name in found[1:]]
