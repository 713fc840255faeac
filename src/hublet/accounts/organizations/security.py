"""Network security of organizations: from where their members reach them, and who needs a token."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network

from hublet.accounts.errors import InvalidNetworkSecurity, WouldLockOut
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import security_store as store
from hublet.accounts.records import (
    Actor,
    IpRange,
    NetworkAuthentication,
    NetworkSecurity,
    Organization,
    is_within,
)
from hublet.core.database import Connection, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL

MAX_RANGES = 100


def parse_ranges(texts: Sequence[str]) -> tuple[IpRange, ...]:
    """Read networks in CIDR notation, of IPv4 and IPv6; each counts once."""
    if len(texts) > MAX_RANGES:
        raise InvalidNetworkSecurity(f"ipRanges: at most {MAX_RANGES} ranges can be given.")
    ranges: dict[IpRange, None] = {}
    for index, text in enumerate(texts):
        try:
            ranges[ip_network(text.strip())] = None
        except ValueError:
            raise InvalidNetworkSecurity(
                f"ipRanges[{index}]: {text!r} is not a network in CIDR notation, such as "
                "203.0.113.0/24 or 2001:db8::/32; the bits behind the prefix must be zero."
            ) from None
    return tuple(ranges)


async def get(conn: Reader, organization: Organization) -> NetworkSecurity:
    return await store.find_networks(conn, organization.id)


async def update(  # noqa: PLR0913 - each of them may be left out
    conn: Connection,
    actor: Actor,
    organization: Organization,
    *,
    ip_ranges: tuple[IpRange, ...] | None = None,
    is_restricted: bool | None = None,
    needs_token: bool | None = None,
    by_operator: bool = False,
) -> NetworkSecurity:
    """Change the settings; None keeps a value. They hold in every process within a second.

    That requests from a network need a token binds everybody there: it waits for an operator of the hub
    unless one asks for it.
    """
    await conn.lock(f"networks of {organization.id}")
    before = await store.find_networks(conn, organization.id)
    networks = replace(
        before,
        ip_ranges=before.ip_ranges if ip_ranges is None else ip_ranges,
        is_restricted=before.is_restricted if is_restricted is None else is_restricted,
        authentication=_authentication(
            before, needs_token=needs_token, ip_ranges=ip_ranges, by_operator=by_operator
        ),
    )
    if networks == before:
        return before
    _check(networks, actor)
    await store.set_networks(conn, organization.id, networks)
    # Whoever is remembered by a token may have other rights now.
    conn.wake(CREDENTIALS_CHANNEL)
    await audit.record(
        conn, organization.id, actor, "organization.network-security", target=organization.name,
        details={
            "ipRanges": [str(each) for each in networks.ip_ranges],
            "enforceIpRestriction": networks.is_restricted,
            "enforceAuth": networks.authentication,
        },
    )  # fmt: skip
    return networks


def _authentication(
    before: NetworkSecurity,
    *,
    needs_token: bool | None,
    ip_ranges: tuple[IpRange, ...] | None,
    by_operator: bool,
) -> NetworkAuthentication:
    """Return what holds after a change: other networks need an operator's consent anew."""
    wanted = before.authentication is not NetworkAuthentication.no
    if needs_token is not None:
        wanted = needs_token
    if not wanted:
        return NetworkAuthentication.no
    is_same = ip_ranges is None or set(ip_ranges) <= set(before.ip_ranges)
    if by_operator or (before.authentication is NetworkAuthentication.yes and is_same):
        return NetworkAuthentication.yes
    return NetworkAuthentication.pending


def _check(networks: NetworkSecurity, actor: Actor) -> None:
    has_use = networks.is_restricted or networks.authentication is not NetworkAuthentication.no
    if has_use and not networks.ip_ranges:
        raise InvalidNetworkSecurity(
            "ipRanges: name at least one network before it is enforced, "
            "or nobody would reach the organization."
        )
    if not networks.is_restricted or actor.address is None:
        return
    if not is_within(actor.address, networks.ip_ranges):
        raise WouldLockOut(actor.address)
