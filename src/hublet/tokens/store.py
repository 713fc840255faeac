"""SQL of credentials. Values never come here, only their digests."""

import json
from collections.abc import Iterable, Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.tokens.format import Kind
from hublet.tokens.records import (
    ALL_SCOPES,
    Caller,
    Grants,
    Scope,
    ScopedGrant,
    Token,
    TokenRole,
    scopes_of,
)

_COLUMNS = (
    "t.id, t.kind, t.user_id, t.name, t.role, t.grants, t.hint, t.created_at, t.expires_at, "
    "t.last_used_at, t.revoked_at"
)


async def add(conn: Connection, token: Token, *, digest: str) -> bool:
    """Add a token; False when its digest is known already."""
    return await conn.execute(
        """
        INSERT INTO tokens
            (id, digest, kind, user_id, name, role, grants, hint, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING
        """,
        token.id, digest, token.kind, token.user_id, token.name, token.role,
        _grants_text(token.grants), token.hint, to_micros(token.created_at),
        to_micros(token.expires_at) if token.expires_at else None,
    ) == 1  # fmt: skip


async def find_caller(conn: Reader, digests: Sequence[str]) -> Caller | None:
    """Return who holds the token, unless it is revoked or expired or its owner is disabled."""
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS}, u.name AS user_name, u.is_admin
        FROM tokens t JOIN users u ON u.id = t.user_id
        WHERE t.digest IN ({_places(digests)}) AND t.revoked_at IS NULL AND u.disabled_at IS NULL
        """,
        *digests,
    )
    if row is None or (row["expires_at"] is not None and row["expires_at"] <= micros()):
        return None
    token = _record(row)
    return Caller(
        user_id=token.user_id,
        user_name=row["user_name"],
        is_admin=bool(row["is_admin"]),
        token=token,
        scopes=scopes_of(token.role, token.grants),
    )


def _places(values: Sequence[str]) -> str:
    return ", ".join(f"${number}" for number in range(1, len(values) + 1))


async def find(conn: Reader, token_id: str, *, user_id: str) -> Token | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM tokens t WHERE t.id = $1 AND t.user_id = $2", token_id, user_id
    )
    return _record(row) if row else None


async def list_of(conn: Reader, *, user_id: str) -> list[Token]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM tokens t WHERE t.user_id = $1 AND t.revoked_at IS NULL ORDER BY t.id",
        user_id,
    )
    return [_record(row) for row in rows]


async def revoke(conn: Connection, token_id: str) -> bool:
    """Revoke a token; False when it was revoked before."""
    return await conn.execute(
        "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
        micros(), token_id,
    ) == 1  # fmt: skip


async def revoke_by_digests(conn: Connection, digests: Iterable[str]) -> list[Token]:
    """Revoke what these digests belong to; return what was not revoked before."""
    rows = await conn.fetch_all(
        f"""
        UPDATE tokens AS t SET revoked_at = $1
        WHERE t.digest IN each($2) AND t.revoked_at IS NULL RETURNING {_COLUMNS.replace("t.", "")}
        """,
        micros(), json.dumps(list(digests)),
    )  # fmt: skip
    return [_record(row) for row in rows]


async def set_last_used(conn: Connection, uses: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many(
        "UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at, 0) < $2",
        list(uses),
    )


def _record(row: Row) -> Token:
    return Token(
        id=row["id"],
        kind=Kind(row["kind"]),
        user_id=row["user_id"],
        name=row["name"],
        role=TokenRole(row["role"]),
        grants=_grants(row["grants"]),
        hint=row["hint"],
        created_at=from_micros(row["created_at"]),
        expires_at=from_micros(row["expires_at"]) if row["expires_at"] else None,
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
        revoked_at=from_micros(row["revoked_at"]) if row["revoked_at"] else None,
    )


def _grants_text(grants: Grants) -> str:
    return json.dumps(
        {
            "global": sorted(grants.everywhere),
            "scoped": [
                {
                    "entity": {"_id": g.entity_id, "type": g.entity_type, "name": g.entity_name},
                    "permissions": sorted(g.scopes),
                }
                for g in grants.scoped
            ],
        }
    )


_NO_GRANTS = Grants()
_NO_GRANTS_TEXT = _grants_text(_NO_GRANTS)


def _grants(text: str) -> Grants:
    # Most tokens are not fine-grained, and this is on the way of every look-up.
    if text == _NO_GRANTS_TEXT:
        return _NO_GRANTS
    stored = json.loads(text)
    return Grants(
        everywhere=_known(stored["global"]),
        scoped=tuple(
            ScopedGrant(
                entity_id=grant["entity"]["_id"],
                entity_type=grant["entity"]["type"],
                entity_name=grant["entity"]["name"],
                scopes=_known(grant["permissions"]),
            )
            for grant in stored["scoped"]
        ),
    )


def _known(names: list[str]) -> frozenset[Scope]:
    """Leave out scopes that this version does not know, as after a downgrade."""
    return frozenset(Scope(name) for name in names if name in ALL_SCOPES)
