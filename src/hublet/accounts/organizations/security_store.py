"""SQL of what organizations decide about networks and e-mail domains."""

import json
from ipaddress import ip_network

from hublet.accounts.records import (
    EmailDomain,
    IpRange,
    NetworkAuthentication,
    NetworkSecurity,
    OrganizationLimit,
    Role,
)
from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader


def _ranges(text: str) -> tuple[IpRange, ...]:
    return tuple(ip_network(each) for each in json.loads(text))


async def find_networks(conn: Reader, organization_id: str) -> NetworkSecurity:
    row = await conn.fetch_one(
        """
        SELECT ip_ranges, is_restricted, authentication FROM organization_networks
        WHERE organization_id = $1
        """,
        organization_id,
    )
    if row is None:
        return NetworkSecurity()
    return NetworkSecurity(
        ip_ranges=_ranges(row["ip_ranges"]),
        is_restricted=bool(row["is_restricted"]),
        authentication=NetworkAuthentication(row["authentication"]),
    )


async def set_networks(conn: Connection, organization_id: str, networks: NetworkSecurity) -> None:
    await conn.execute(
        """
        INSERT INTO organization_networks (organization_id, ip_ranges, is_restricted, authentication)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (organization_id) DO UPDATE SET ip_ranges = excluded.ip_ranges,
            is_restricted = excluded.is_restricted, authentication = excluded.authentication
        """,
        organization_id, json.dumps([str(each) for each in networks.ip_ranges]),
        networks.is_restricted, networks.authentication,
    )  # fmt: skip


async def limits_of_user(conn: Reader, user_id: str) -> list[OrganizationLimit]:
    """Return the organizations of a user that are reached from their own networks alone.

    A trusted publisher is no member, but writes a repository of the organization.
    """
    rows = await conn.fetch_all(
        """
        SELECT o.id, o.name, n.ip_ranges
        FROM organization_networks n JOIN organizations o ON o.id = n.organization_id
        WHERE n.is_restricted AND n.organization_id IN (
            SELECT m.organization_id FROM memberships m WHERE m.user_id = $1
            UNION ALL
            SELECT r.owner_id FROM trusted_publishers p JOIN repos r ON r.id = p.repo_id
            WHERE p.id = $1
        ) ORDER BY o.id
        """,
        user_id,
    )
    return [
        OrganizationLimit(
            organization_id=row["id"],
            organization_name=row["name"],
            ip_ranges=_ranges(row["ip_ranges"]),
        )
        for row in rows
    ]


async def list_ranges_that_need_tokens(conn: Reader) -> list[IpRange]:
    """Return the networks from which requests need a token, of all organizations."""
    rows = await conn.fetch_all(
        "SELECT ip_ranges FROM organization_networks WHERE authentication = $1",
        NetworkAuthentication.yes,
    )
    return [each for row in rows for each in _ranges(row["ip_ranges"])]


async def list_domains(conn: Reader, organization_id: str) -> list[EmailDomain]:
    rows = await conn.fetch_all(
        """
        SELECT domain, role, created_at FROM organization_email_domains
        WHERE organization_id = $1 ORDER BY domain
        """,
        organization_id,
    )
    return [
        EmailDomain(
            domain=row["domain"], role=Role(row["role"]), created_at=from_micros(row["created_at"])
        )
        for row in rows
    ]


async def set_domain(conn: Connection, organization_id: str, *, domain: str, role: Role) -> None:
    await conn.execute(
        """
        INSERT INTO organization_email_domains (organization_id, domain, role, created_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (organization_id, domain) DO UPDATE SET role = excluded.role
        """,
        organization_id, domain, role, micros(),
    )  # fmt: skip


async def remove_domain(conn: Connection, organization_id: str, domain: str) -> bool:
    """Remove a domain; False when the organization does not have it."""
    return await conn.execute(
        "DELETE FROM organization_email_domains WHERE organization_id = $1 AND domain = $2",
        organization_id, domain,
    ) == 1  # fmt: skip


async def list_verified_addresses(conn: Reader, user_id: str) -> list[str]:
    rows = await conn.fetch_all(
        "SELECT address FROM emails WHERE user_id = $1 AND verified_at IS NOT NULL ORDER BY id",
        user_id,
    )
    return [row["address"] for row in rows]
