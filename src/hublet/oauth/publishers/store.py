"""SQL of trusted publishers and of the ID tokens that were exchanged."""

import json
from collections.abc import Mapping

from hublet.accounts.records import OPERATOR
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.publishers.records import Provider, Publisher

_COLUMNS = (
    "p.id, p.repo_id, p.provider, p.issuer, p.claims, p.pins, p.creator_id, p.created_at, "
    "p.updated_at, p.last_used_at, p.last_subject, c.name AS creator_name"
)
_FROM = "FROM trusted_publishers p LEFT JOIN users c ON c.id = p.creator_id"


async def add(conn: Connection, publisher: Publisher) -> None:
    await conn.execute(
        """
        INSERT INTO trusted_publishers
            (id, repo_id, provider, issuer, claims, pins, creator_id, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        publisher.id, publisher.repo_id, publisher.provider, publisher.issuer,
        _to_json(publisher.claims), _to_json(publisher.pins), publisher.creator_id,
        to_micros(publisher.created_at), to_micros(publisher.updated_at),
    )  # fmt: skip


async def list_of(conn: Reader, repo_id: str, *, issuer: str | None = None) -> list[Publisher]:
    """Return the publishers of a repository, oldest first, or those with this issuer."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} {_FROM} WHERE p.repo_id = $1 AND ($2 = '' OR p.issuer = $2) ORDER BY p.id
        """,
        repo_id, issuer or "",
    )  # fmt: skip
    return [_record(row) for row in rows]


async def find(conn: Reader, publisher_id: str, *, repo_id: str) -> Publisher | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} {_FROM} WHERE p.id = $1 AND p.repo_id = $2", publisher_id, repo_id
    )
    return _record(row) if row else None


async def list_created_by(
    conn: Reader, user_id: str, *, organization_id: str
) -> list[tuple[Publisher, str]]:
    """Return publishers that a user added to repositories of an organization, with their names."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS}, o.name AS owner_name, r.name AS repo_name
        {_FROM} JOIN repos r ON r.id = p.repo_id JOIN organizations o ON o.id = r.owner_id
        WHERE p.creator_id = $1 AND r.owner_id = $2 ORDER BY p.id
        """,
        user_id, organization_id,
    )  # fmt: skip
    return [(_record(row), f"{row['owner_name']}/{row['repo_name']}") for row in rows]


async def is_issuer_used(conn: Reader, issuer: str) -> bool:
    """Tell whether any publisher of the hub has this issuer."""
    row = await conn.fetch_one("SELECT 1 FROM trusted_publishers WHERE issuer = $1 LIMIT 1", issuer)
    return row is not None


async def update(conn: Connection, publisher: Publisher) -> None:
    await conn.execute(
        """
        UPDATE trusted_publishers
        SET provider = $2, issuer = $3, claims = $4, pins = $5, updated_at = $6
        WHERE id = $1
        """,
        publisher.id, publisher.provider, publisher.issuer, _to_json(publisher.claims),
        _to_json(publisher.pins), to_micros(publisher.updated_at),
    )  # fmt: skip


async def set_used(
    conn: Connection, publisher_id: str, *, pins: Mapping[str, str], subject: str
) -> None:
    await conn.execute(
        """
        UPDATE trusted_publishers SET pins = $2, last_subject = $3, last_used_at = $4 WHERE id = $1
        """,
        publisher_id, _to_json(pins), subject, micros(),
    )  # fmt: skip


async def remove(conn: Connection, publisher_id: str) -> bool:
    """Remove a publisher; its row among the users stays, off, because commits and events name it."""
    removed = await conn.execute("DELETE FROM trusted_publishers WHERE id = $1", publisher_id)
    await conn.execute("UPDATE users SET disabled_at = $2 WHERE id = $1", publisher_id, micros())
    return removed == 1


async def claim_id_token(conn: Connection, digest: str, *, expires_at: int) -> bool:
    """Mark an ID token as exchanged; False when it was before. Of two at once, one wins."""
    return await conn.execute(
        "INSERT INTO used_id_tokens (digest, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        digest, expires_at,
    ) == 1  # fmt: skip


async def remove_expired_id_tokens(conn: Connection) -> None:
    await conn.execute("DELETE FROM used_id_tokens WHERE expires_at < $1", micros())


def _to_json(values: Mapping[str, str]) -> str:
    return json.dumps(dict(values), sort_keys=True)


def _record(row: Row) -> Publisher:
    return Publisher(
        id=row["id"],
        repo_id=row["repo_id"],
        provider=Provider(row["provider"]),
        issuer=row["issuer"],
        claims=json.loads(row["claims"]),
        pins=json.loads(row["pins"]),
        creator_id=row["creator_id"],
        creator_name=row["creator_name"] or OPERATOR.name,
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
        last_subject=row["last_subject"],
    )
