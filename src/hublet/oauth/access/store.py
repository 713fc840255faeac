"""SQL of accesses and of refresh tokens."""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.access.records import EndReason, Holder, RefreshToken
from hublet.oauth.records import Access, Via
from hublet.oauth.scopes import permission_record, to_json_list

# Where accesses are called `a`; `access_record` reads it.
ACCESS_COLUMNS = (
    "a.id, a.user_id, a.app_id, a.via, a.scopes, a.organization_ids, a.session_id, "
    "a.authenticated_at, a.address, a.agent, a.created_at, a.last_used_at, a.expires_at, "
    "a.ended_at, a.resource"
)


async def add(conn: Connection, accesses: Iterable[Access]) -> None:
    await conn.execute_many(
        """
        INSERT INTO oauth_accesses
            (id, user_id, app_id, via, scopes, organization_ids, session_id, authenticated_at,
             address, agent, created_at, last_used_at, expires_at, resource)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        """,
        [_row_values(access) for access in accesses],
    )


def _row_values(access: Access) -> tuple[object, ...]:
    permission = access.permission
    return (
        access.id, permission.user_id, permission.app_id, access.via, to_json_list(permission.scopes),
        to_json_list(permission.organization_ids), access.session_id,
        to_micros(access.authenticated_at) if access.authenticated_at else None, access.address,
        access.agent, to_micros(access.created_at), to_micros(access.last_used_at),
        to_micros(access.expires_at), permission.resource,
    )  # fmt: skip


async def find(conn: Reader, access_id: str) -> Access | None:
    row = await conn.fetch_one(
        f"SELECT {ACCESS_COLUMNS} FROM oauth_accesses a WHERE a.id = $1", access_id
    )
    return access_record(row) if row else None


async def use(conn: Connection, access_ids: Iterable[str]) -> None:
    """Set the time of the last use."""
    await conn.execute(
        "UPDATE oauth_accesses SET last_used_at = $1 WHERE id IN each($2)",
        micros(), json.dumps(list(access_ids)),
    )  # fmt: skip


async def list_of(conn: Reader, user_id: str) -> list[Access]:
    """Return the active accesses of a user, newest first; any token's use counts as the last."""
    rows = await conn.fetch_all(
        f"""
        SELECT {ACCESS_COLUMNS.replace("a.last_used_at, ", "")}, coalesce(
            (SELECT max(coalesce(t.last_used_at, t.created_at)) FROM tokens t
             WHERE t.access_id = a.id),
            a.last_used_at
        ) AS last_used_at
        FROM oauth_accesses a
        WHERE a.user_id = $1 AND a.ended_at IS NULL AND a.expires_at > $2
        ORDER BY a.id DESC
        """,
        user_id, micros(),
    )  # fmt: skip
    return [access_record(row) for row in rows]


async def list_ids_of_app(conn: Reader, app_id: str, *, vias: Collection[Via]) -> list[str]:
    rows = await conn.fetch_all(
        """
        SELECT id FROM oauth_accesses
        WHERE app_id = $1 AND ended_at IS NULL AND via IN each($2)
        """,
        app_id, json.dumps(list(vias)),
    )  # fmt: skip
    return [row["id"] for row in rows]


async def list_exchanged_ids(
    conn: Reader, organization_id: str, *, user_id: str | None = None
) -> list[str]:
    """Return accesses of an organization's apps from exchange, for one member or for all."""
    whose, values = ("", []) if user_id is None else ("AND a.user_id = $3", [user_id])
    rows = await conn.fetch_all(
        f"""
        SELECT a.id FROM oauth_apps p JOIN oauth_accesses a ON a.app_id = p.id
        WHERE p.organization_id = $1 AND a.ended_at IS NULL AND a.via = $2 {whose}
        """,
        organization_id, Via.exchange, *values,
    )  # fmt: skip
    return [row["id"] for row in rows]


async def find_id_of_token(conn: Reader, token_id: str) -> str | None:
    access_id: str | None = await conn.fetch_value(
        "SELECT access_id FROM tokens WHERE id = $1", token_id
    )
    return access_id


async def end(
    conn: Connection, access_ids: Collection[str], reason: EndReason
) -> list[tuple[str, str, str]]:
    """End accesses; return user, app and the app's name of each that had not ended before.

    They are locked in the order in which a refresh locks its own.
    """
    rows = await conn.fetch_all(
        """
        UPDATE oauth_accesses SET ended_at = $1, end_reason = $2
        WHERE id IN (
            SELECT a.id FROM oauth_accesses a
            WHERE a.id IN each($3) AND a.ended_at IS NULL ORDER BY a.id /* lock a */
        ) AND ended_at IS NULL
        RETURNING user_id, app_id,
            (SELECT p.name FROM oauth_apps p WHERE p.id = oauth_accesses.app_id) AS app_name
        """,
        micros(), reason, json.dumps(list(access_ids)),
    )  # fmt: skip
    return [(row["user_id"], row["app_id"], row["app_name"]) for row in rows]


async def remove_expired(conn: Connection, *, before: int, limit: int) -> int:
    """Remove accesses that expired before then, with their tokens; return how many."""
    rows = await conn.fetch_all(
        "SELECT id FROM oauth_accesses WHERE expires_at < $1 ORDER BY expires_at LIMIT $2",
        before, limit,
    )  # fmt: skip
    ids = json.dumps([row["id"] for row in rows])
    await conn.execute("DELETE FROM tokens WHERE access_id IN each($1)", ids)
    await conn.execute("DELETE FROM oauth_accesses WHERE id IN each($1)", ids)
    return len(rows)


async def list_holders(
    conn: Reader, user_ids: Iterable[str], *, organization_ids: Iterable[str]
) -> dict[str, Holder]:
    """Return who of these persons is not disabled, with those of these organizations they belong to."""
    rows = await conn.fetch_all(
        """
        SELECT u.id AS user_id, u.name AS user_name, o.id, o.name FROM users u
        LEFT JOIN memberships m ON m.user_id = u.id AND m.organization_id IN each($2)
        LEFT JOIN organizations o ON o.id = m.organization_id
        WHERE u.id IN each($1) AND u.disabled_at IS NULL
        """,
        json.dumps(list(user_ids)), json.dumps(list(organization_ids)),
    )  # fmt: skip
    organizations: dict[str, dict[str, str]] = {row["user_id"]: {} for row in rows}
    for row in rows:
        if row["id"] is not None:
            organizations[row["user_id"]][row["id"]] = row["name"]
    return {
        row["user_id"]: Holder(
            user_id=row["user_id"],
            user_name=row["user_name"],
            organizations=organizations[row["user_id"]],
        )
        for row in rows
    }


def access_record(row: Row) -> Access:
    return Access(
        id=row["id"],
        permission=permission_record(row),
        via=Via(row["via"]),
        session_id=row["session_id"],
        authenticated_at=from_micros(row["authenticated_at"]) if row["authenticated_at"] else None,
        address=row["address"],
        agent=row["agent"],
        created_at=from_micros(row["created_at"]),
        last_used_at=from_micros(row["last_used_at"]),
        expires_at=from_micros(row["expires_at"]),
        ended_at=from_micros(row["ended_at"]) if row["ended_at"] else None,
    )


async def add_refresh_tokens(conn: Connection, rows: Iterable[tuple[str, str, int]]) -> None:
    """Add refresh tokens by id, access and generation."""
    await conn.execute_many(
        "INSERT INTO oauth_refreshes (token_id, access_id, generation) VALUES ($1, $2, $3)", rows
    )


_REFRESH_TOKENS = f"""
    SELECT {ACCESS_COLUMNS}, r.token_id, r.generation, r.replaced_at, r.sealed_answer, t.digest,
           t.revoked_at AS token_revoked_at, t.expires_at AS token_expires_at,
           t.created_at AS token_created_at, u.name AS user_name
    FROM tokens t
    JOIN oauth_refreshes r ON r.token_id = t.id
    JOIN oauth_accesses a ON a.id = r.access_id
    LEFT JOIN users u ON u.id = a.user_id AND u.disabled_at IS NULL
    WHERE t.digest IN each($1)
"""


async def find_refresh_token(conn: Reader, digests: Sequence[str]) -> RefreshToken | None:
    row = await conn.fetch_one(_REFRESH_TOKENS, json.dumps(digests))
    return _refresh_token_record(row) if row else None


async def lock_refresh_tokens(conn: Connection, digests: Iterable[str]) -> dict[str, RefreshToken]:
    """Return refresh tokens by their digests, locked with their accesses.

    Nobody else replaces one before the transaction ends. A request that ends the access waits, and
    then revokes what was issued.
    """
    rows = await conn.fetch_all(
        f"{_REFRESH_TOKENS} ORDER BY a.id, t.id /* lock a, r */", json.dumps(list(digests))
    )
    return {row["digest"]: _refresh_token_record(row) for row in rows}


async def replace_refresh_tokens(
    conn: Connection, sealed_answers: Iterable[tuple[str, bytes]]
) -> None:
    """Mark locked refresh tokens, by id, as replaced."""
    at = micros()
    await conn.execute_many(
        "UPDATE oauth_refreshes SET replaced_at = $1, sealed_answer = $2 WHERE token_id = $3",
        [(at, sealed_answer, token_id) for token_id, sealed_answer in sealed_answers],
    )


def _refresh_token_record(row: Row) -> RefreshToken:
    now = micros()
    return RefreshToken(
        token_id=row["token_id"],
        generation=row["generation"],
        replaced_at=from_micros(row["replaced_at"]) if row["replaced_at"] else None,
        sealed_answer=bytes(row["sealed_answer"]) if row["sealed_answer"] else None,
        is_alive=(
            row["token_revoked_at"] is None
            and row["ended_at"] is None
            and row["user_name"] is not None
            and min(row["token_expires_at"], row["expires_at"]) > now
        ),
        created_at=from_micros(row["token_created_at"]),
        expires_at=from_micros(row["token_expires_at"]),
        user_name=row["user_name"] or "",
        access=access_record(row),
    )
