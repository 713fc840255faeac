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


def hosts_text(members: Sequence[NetworkMember], outside: EgressEndpoints | None) -> str:
    """Return a line for each name of each member, its own first; all know all of them.

    A line holds one name, because musl reads no more than 512 bytes of it.
    """
    there = sorted(members, key=lambda member: member.address)
    lines = [*_LOOPBACK, *(f"{member.address} {name}" for member in there for name in member.names)]
    if outside and outside.hub_host:
        lines += [f"{address} {outside.hub_host}" for address in outside.hub_addresses]
    return "\n".join(lines) + "\n"


def resolver_text(outside: EgressEndpoints | None) -> str:
    """Return the form of /etc/resolv.conf; without anybody to ask, an unknown name fails at once."""
    asked = outside.nameservers if outside else ()
    return "".join(f"nameserver {address}\n" for address in asked) or "options attempts:1\n"


def rewrite_in_place(path: Path, text: str) -> None:
    """Change a file that jobs have in their view: it must stay the same file.

    Written at once and never shorter than before until all of it is there, so that a reader in
    between finds whole lines.
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


# The second has the real ones where the first names a server of the machine's own loopback.
_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
_PORTS = {"http": 80, "https": 443}


def find_endpoints(policy: NetworkPolicy) -> EgressEndpoints:
    """Look for both as this machine would; what is on its loopback cannot be reached by a job."""
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
    """Return who has a name in the network that an attempt is in; nobody where it is in none.

    Looked up in the hub's own file, which is the attempt's /etc/hosts: nothing of a job has a say
    in it, and nothing runs in the job. Blocks.
    """
    ledger = MemberRegistry.of(data_dir)
    for home in ledger.homes():
        if ledger.has(home, folder):
            return _addresses_in(home / HOSTS_FILE, name)
    return []


def _addresses_in(file: Path, name: str) -> list[str]:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        # The last one has just left.
        return []
    words = [line.split() for line in lines]
    return [found[0] for found in words if name in found[1:]]
