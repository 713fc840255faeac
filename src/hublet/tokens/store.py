"""SQL of credentials. Values never come here, only their digests."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from hublet.accounts.organizations.security_store import limits_of_user
from hublet.accounts.records import OrganizationLimit
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.tokens.format import TokenKind
from hublet.tokens.records import (
    ALL_SCOPES,
    Caller,
    Grants,
    OrganizationToken,
    Scope,
    ScopedGrant,
    TokenRecord,
    TokenRole,
    scopes_of,
)

_COLUMNS = (
    "t.id, t.kind, t.user_id, t.name, t.role, t.grants, t.hint, t.created_at, t.expires_at, "
    "t.last_used_at, t.revoked_at, t.app_id, t.access_id, t.organization_id, t.resource, "
    "t.skips_network_security"
)


_INSERT = """
    INSERT INTO tokens
        (id, digest, kind, user_id, name, role, grants, hint, created_at, expires_at, app_id,
         access_id, organization_id, resource)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
"""


async def add(conn: Connection, token: TokenRecord, digest: str) -> bool:
    """Add a token with its digest; False when that is known already."""
    values = _row_values(token, digest)
    return await conn.execute(f"{_INSERT} ON CONFLICT DO NOTHING", *values) == 1


async def add_new(conn: Connection, tokens: Iterable[tuple[TokenRecord, str]]) -> None:
    """Add tokens that were just made, each with its digest: none of them can be known already."""
    await conn.execute_many(_INSERT, [_row_values(token, digest) for token, digest in tokens])


def _row_values(token: TokenRecord, digest: str) -> tuple[object, ...]:
    return (
        token.id, digest, token.kind, token.user_id, token.name, token.role,
        _grants_text(token.grants), token.hint, to_micros(token.created_at),
        to_micros(token.expires_at) if token.expires_at else None, token.app_id, token.access_id,
        token.organization_id, token.resource,
    )  # fmt: skip


async def find_caller(conn: Reader, digests: Sequence[str]) -> Caller | None:
    """Return who holds the token, unless it is revoked or expired or its owner is disabled."""
    return await _find_caller(conn, f"t.digest IN ({_placeholders(len(digests))})", *digests)


async def find_caller_by_id(conn: Reader, token_id: str) -> Caller | None:
    """Like `find_caller`, for what was signed for the holder of a token and names its id."""
    return await _find_caller(conn, "t.id = $1", token_id)


async def _find_caller(conn: Reader, condition: str, *values: str) -> Caller | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS}, u.name AS user_name, u.is_admin, {_HAS_LIMITS}
        FROM tokens t JOIN users u ON u.id = t.user_id
        WHERE {condition} AND t.revoked_at IS NULL AND u.disabled_at IS NULL
            AND t.kind NOT IN ('refresh', 'secret')
            AND (
                t.organization_id IS NULL
                OR EXISTS (
                    SELECT 1 FROM memberships m
                    WHERE m.organization_id = t.organization_id AND m.user_id = t.user_id
                )
            )
        """,
        *values,
    )
    if row is None or (row["expires_at"] is not None and row["expires_at"] <= micros()):
        return None
    token = _record(row)
    is_publisher = token.kind is TokenKind.publisher
    return Caller(
        user_id=token.user_id,
        # A publisher acts for another workflow run each time, which its token names.
        user_name=token.name if is_publisher else row["user_name"],
        is_admin=bool(row["is_admin"]),
        token=token,
        scopes=scopes_of(token.role, token.grants),
        # Few tokens have any: only they cost a second statement.
        blocked=await _limits_of(conn, token) if row["has_limits"] else (),
    )


# Whether organizations name networks for the user of a token, or cut the token off.
_HAS_LIMITS = """
    (
        EXISTS (SELECT 1 FROM token_cut_offs c WHERE c.credential_id = t.id OR c.credential_id = t.access_id)
        OR EXISTS (
            SELECT 1 FROM memberships w JOIN organization_networks n
                ON n.organization_id = w.organization_id AND n.is_restricted
            WHERE w.user_id = t.user_id
        )
        OR t.kind = 'publisher'
    ) AS has_limits
"""


async def _limits_of(conn: Reader, token: TokenRecord) -> tuple[OrganizationLimit, ...]:
    rows = await conn.fetch_all(
        """
        SELECT o.id, o.name FROM token_cut_offs c JOIN organizations o ON o.id = c.organization_id
        WHERE c.credential_id = $1 OR c.credential_id = $2
        """,
        token.id, token.access_id or "",
    )  # fmt: skip
    cut_off = {
        row["id"]: OrganizationLimit(organization_id=row["id"], organization_name=row["name"])
        for row in rows
    }
    networks = [] if token.skips_network_security else await limits_of_user(conn, token.user_id)
    return (
        *cut_off.values(),
        *(each for each in networks if each.organization_id not in cut_off),
    )


async def still_reaches(conn: Reader, token: TokenRecord, owner_id: str) -> bool:
    """Tell whether a token or session is still there, and not cut off from what this owner has."""
    return bool(
        await conn.fetch_value(
            """
            SELECT EXISTS (SELECT 1 FROM sessions s WHERE s.id = $1) OR EXISTS (
                SELECT 1 FROM tokens t WHERE t.id = $1 AND t.revoked_at IS NULL AND NOT EXISTS (
                    SELECT 1 FROM token_cut_offs c
                    WHERE c.organization_id = $2
                        AND (c.credential_id = t.id OR c.credential_id = t.access_id)
                )
            )
            """,
            token.id, owner_id,
        )
    )  # fmt: skip


def _placeholders(count: int) -> str:
    return ", ".join(f"${number}" for number in range(1, count + 1))


async def find(conn: Reader, token_id: str, *, user_id: str) -> TokenRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM tokens t WHERE t.id = $1 AND t.user_id = $2", token_id, user_id
    )
    return _record(row) if row else None


async def list_of(conn: Reader, *, user_id: str) -> list[TokenRecord]:
    """Return the tokens that a user made; those of apps are shown with their access."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM tokens t
        WHERE t.user_id = $1 AND t.revoked_at IS NULL AND t.app_id IS NULL ORDER BY t.id
        """,
        user_id,
    )
    return [_record(row) for row in rows]


# Credentials that reach organization $1 by a member of it: tokens for all of an account, those with
# scopes that hold everywhere, and those that were given for it. Confined to another one, they do not.
_FOR_ORGANIZATION = """
    FROM memberships m JOIN users u ON u.id = m.user_id JOIN tokens t ON t.user_id = u.id
    LEFT JOIN token_cut_offs c
        ON c.organization_id = $1 AND (c.credential_id = t.id OR c.credential_id = t.access_id)
    WHERE m.organization_id = $1 AND t.revoked_at IS NULL AND u.disabled_at IS NULL
        AND t.kind NOT IN ('refresh', 'secret')
        AND (t.expires_at IS NULL OR t.expires_at > $2)
        AND (
            t.organization_id = $1
            OR (
                t.organization_id IS NULL
                AND (
                    t.role <> 'fineGrained' OR t.grants LIKE '%' || $1 || '%'
                    OR t.grants NOT LIKE '{"global": []%'
                )
            )
        )
"""


async def list_for_organization(
    conn: Reader, organization_id: str, *, after: str = "", limit: int = 100
) -> list[OrganizationToken]:
    """Return the credentials of members that reach an organization, or did."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS}, u.name AS user_name, c.cut_off_at {_FOR_ORGANIZATION} AND t.id > $3
        ORDER BY t.id LIMIT $4
        """,
        organization_id, micros(), after, limit,
    )  # fmt: skip
    return [_organization_token(row) for row in rows]


async def find_for_organization(
    conn: Reader, organization_id: str, token_id: str
) -> OrganizationToken | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS}, u.name AS user_name, c.cut_off_at {_FOR_ORGANIZATION} AND t.id = $3
        """,
        organization_id, micros(), token_id,
    )  # fmt: skip
    return _organization_token(row) if row else None


def _organization_token(row: Row) -> OrganizationToken:
    return OrganizationToken(
        token=_record(row),
        user_name=row["user_name"],
        cut_off_at=from_micros(row["cut_off_at"]) if row["cut_off_at"] else None,
    )


async def cut_off(conn: Connection, organization_id: str, credential_id: str) -> bool:
    """Cut a credential off from an organization; False when it is already."""
    return await conn.execute(
        """
        INSERT INTO token_cut_offs (credential_id, organization_id, cut_off_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        credential_id, organization_id, micros(),
    ) == 1  # fmt: skip


async def update(conn: Connection, token: TokenRecord) -> None:
    """Store the name, the rights and the exemption of a token."""
    await conn.execute(
        """
        UPDATE tokens SET name = $2, role = $3, grants = $4, skips_network_security = $5 WHERE id = $1
        """,
        token.id, token.name, token.role, _grants_text(token.grants), token.skips_network_security,
    )  # fmt: skip


async def last_uses_of(conn: Reader, user_ids: Iterable[str]) -> dict[str, datetime]:
    """Return when each of these users last used any credential."""
    rows = await conn.fetch_all(
        """
        SELECT t.user_id, max(t.last_used_at) AS at FROM tokens t
        WHERE t.user_id IN each($1) AND t.last_used_at IS NOT NULL GROUP BY t.user_id
        """,
        json.dumps(list(user_ids)),
    )
    return {row["user_id"]: from_micros(row["at"]) for row in rows}


async def revoke(conn: Connection, token_id: str) -> bool:
    """Revoke a token; False when it was revoked before."""
    return await conn.execute(
        "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
        micros(), token_id,
    ) == 1  # fmt: skip


async def revoke_by_digests(conn: Connection, digests: Iterable[str]) -> list[TokenRecord]:
    """Revoke what these digests belong to; return what was not revoked before."""
    rows = await conn.fetch_all(
        f"""
        UPDATE tokens AS t SET revoked_at = $1
        WHERE t.digest IN each($2) AND t.revoked_at IS NULL RETURNING {_COLUMNS.replace("t.", "")}
        """,
        micros(), json.dumps(list(digests)),
    )  # fmt: skip
    return [_record(row) for row in rows]


async def find_by_digests(conn: Reader, digests: Iterable[str]) -> TokenRecord | None:
    """Return what these digests belong to, whether or not it still works."""
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM tokens t WHERE t.digest IN each($1)", json.dumps(list(digests))
    )
    return _record(row) if row else None


async def revoke_of_accesses(conn: Connection, access_ids: Iterable[str]) -> int:
    return await conn.execute(
        "UPDATE tokens SET revoked_at = $1 WHERE access_id IN each($2) AND revoked_at IS NULL",
        micros(), json.dumps(list(access_ids)),
    )  # fmt: skip


async def revoke_of_user(
    conn: Connection, user_id: str, *, organization_id: str | None
) -> list[TokenRecord]:
    """Revoke a user's tokens, or those that were given for an organization; return them."""
    for_it = "($3 = '' OR organization_id = $3 OR grants LIKE '%' || $3 || '%')"
    rows = await conn.fetch_all(
        f"""
        UPDATE tokens SET revoked_at = $1
        WHERE user_id = $2 AND revoked_at IS NULL AND {for_it}
        RETURNING {_COLUMNS.replace("t.", "")}
        """,
        micros(), user_id, organization_id or "",
    )  # fmt: skip
    return [_record(row) for row in rows]


async def remove_expired_of_publishers(conn: Connection, *, before: int) -> None:
    """Remove tokens of trusted publishers that expired before then: there is one for each run."""
    await conn.execute(
        "DELETE FROM tokens WHERE kind = $1 AND expires_at < $2", TokenKind.publisher, before
    )


async def set_last_used(conn: Connection, uses: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many(
        "UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at, 0) < $2",
        list(uses),
    )


def _record(row: Row) -> TokenRecord:
    return TokenRecord(
        id=row["id"],
        kind=TokenKind(row["kind"]),
        user_id=row["user_id"],
        name=row["name"],
        role=TokenRole(row["role"]),
        grants=_grants(row["grants"]),
        hint=row["hint"],
        created_at=from_micros(row["created_at"]),
        expires_at=from_micros(row["expires_at"]) if row["expires_at"] else None,
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
        revoked_at=from_micros(row["revoked_at"]) if row["revoked_at"] else None,
        app_id=row["app_id"],
        access_id=row["access_id"],
        organization_id=row["organization_id"],
        resource=row["resource"],
        skips_network_security=bool(row["skips_network_security"]),
    )


def _grants_text(grants: Grants) -> str:
    # Refresh tokens grant nothing by themselves.
    return _NO_GRANTS_TEXT if grants == _NO_GRANTS else _grants_json(grants)


def _grants_json(grants: Grants) -> str:
    inbox = {"inbox": True} if grants.inbox else {}
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
            **inbox,
        }
    )


_NO_GRANTS = Grants()
_NO_GRANTS_TEXT = _grants_json(_NO_GRANTS)


def _grants(text: str) -> Grants:
    # Most tokens are not fine-grained, and this is on the way of every look-up.
    if text == _NO_GRANTS_TEXT:
        return _NO_GRANTS
    stored = json.loads(text)
    return Grants(
        everywhere=_known_scopes(stored["global"]),
        scoped=tuple(
            ScopedGrant(
                entity_id=grant["entity"]["_id"],
                entity_type=grant["entity"]["type"],
                entity_name=grant["entity"]["name"],
                scopes=_known_scopes(grant["permissions"]),
            )
            for grant in stored["scoped"]
        ),
        inbox=stored.get("inbox", False),
    )


def _known_scopes(names: list[str]) -> frozenset[Scope]:
    """Leave out scopes that this version does not know, as after a downgrade."""
    return frozenset(Scope(name) for name in names if name in ALL_SCOPES)
