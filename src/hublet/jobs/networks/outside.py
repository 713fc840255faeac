"""Where a job finds the hub and those who know names, though they may have private addresses."""

import socket
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from hublet.jobs.networks.records import Outside, Policy

# The second has the real ones where the first names a server of the machine's own loopback.
_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
_PORTS = {"http": 80, "https": 443}


def look_outside(policy: Policy) -> Outside:
    """Look for both as this machine would; what is on its loopback cannot be reached by a job."""
    url = urlsplit(policy.base_url)
    host = url.hostname or ""
    addresses = _addresses(host)
    return Outside(
        nameservers=policy.nameservers or _nameservers(),
        hub_host="" if _is_address(host) else host,
        hub_port=url.port or _PORTS.get(url.scheme, 0),
        hub_addresses=addresses,
    )


def _nameservers() -> tuple[IPv4Address, ...]:
    for path in _RESOLVERS:
        if servers := tuple(_named_in(path)):
            return servers
    return ()


def _named_in(path: Path) -> Iterator[IPv4Address]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for words in map(str.split, lines):
        match words:
            case ["nameserver", name, *_] if _is_address(name):
                if not IPv4Address(name).is_loopback:
                    yield IPv4Address(name)
            case _:
                continue


def _addresses(host: str) -> tuple[IPv4Address, ...]:
    try:
        answers = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return ()
    found = {IPv4Address(answer[4][0]) for answer in answers}
    return tuple(sorted(address for address in found if not address.is_loopback))


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True
