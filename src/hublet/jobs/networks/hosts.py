"""The names of a network, in the form of /etc/hosts: one file for all who are in it."""

import os
from collections.abc import Sequence
from pathlib import Path

from hublet.jobs.networks.records import Member, Outside

NAME = "hosts"
_LOOPBACK = ("127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback")


def text_of(members: Sequence[Member], outside: Outside | None) -> str:
    """Return a line for each name of each member, its own first; all know all of them.

    A line holds one name, because musl reads no more than 512 bytes of it.
    """
    there = sorted(members, key=lambda member: member.address)
    lines = [*_LOOPBACK, *(f"{member.address} {name}" for member in there for name in member.names)]
    if outside and outside.hub_host:
        lines += [f"{address} {outside.hub_host}" for address in outside.hub_addresses]
    return "\n".join(lines) + "\n"


def resolver_of(outside: Outside | None) -> str:
    """Return the form of /etc/resolv.conf; without anybody to ask, an unknown name fails at once."""
    asked = outside.nameservers if outside else ()
    return "".join(f"nameserver {address}\n" for address in asked) or "options attempts:1\n"


def rewrite(path: Path, text: str) -> None:
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
