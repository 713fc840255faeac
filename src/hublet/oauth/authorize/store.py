"""SQL of authorization codes (only digests), of consents, and of the names of connected apps and
organizations.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.authorize.records import (
    AppSummary,
    AuthorizationCode,
    Consent,
    IdleConsent,
    NewAuthorizationCode,
)
from hublet.oauth.records import Permission
from hublet.oauth.scopes import permission_record, scopes_from_json, to_json_list

_CODE_COLUMNS = (
    "digest, app_id, user_id, redirect_uri, challenge, nonce, scopes, organization_ids, "
    "session_id, authenticated_at, address, agent, expires_at, used_at, access_id, resource"
)


async def add_code(
    conn: Connection, code: NewAuthorizationCode, *, digest: str, expires_at: int
) -> None:
    permission = code.permission
    await conn.execute(
        """
        INSERT INTO oauth_codes
            (digest, app_id, user_id, redirect_uri, challenge, nonce, scopes, organization_ids,
             session_id, authenticated_at, address, agent, created_at, expires_at, resource)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        """,
        digest, permission.app_id, permission.user_id, code.redirect_uri, code.challenge,
        code.nonce, to_json_list(permission.scopes), to_json_list(permission.organization_ids),
        code.session_id, to_micros(code.authenticated_at), code.address, code.agent, micros(),
        expires_at, permission.resource,
    )  # fmt: skip


async def lock_codes(conn: Connection, digests: Sequence[str]) -> dict[str, AuthorizationCode]:
    """Return codes by their digests, locked until the transaction ends."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_CODE_COLUMNS} FROM oauth_codes
        WHERE digest IN each($1) ORDER BY digest /* lock oauth_codes */
        """,
        json.dumps(digests),
    )
    return {row["digest"]: _code_record(row) for row in rows}


async def use_codes(conn: Connection, uses: Iterable[tuple[str, str | None]]) -> None:
    """Mark locked codes, by their digests, as used by an access or by none."""
    at = micros()
    await conn.execute_many(
        "UPDATE oauth_codes SET used_at = $1, access_id = $2 WHERE digest = $3",
        [(at, access_id, digest) for digest, access_id in uses],
    )


async def remove_expired_codes(conn: Connection, *, before: int) -> None:
    await conn.execute("DELETE FROM oauth_codes WHERE expires_at < $1", before)


def _code_record(row: Row) -> AuthorizationCode:
    return AuthorizationCode(
        digest=row["digest"],
        content=NewAuthorizationCode(
            permission=permission_record(row),
            redirect_uri=row["redirect_uri"],
            challenge=row["challenge"],
            nonce=row["nonce"],
            session_id=row["session_id"],
            authenticated_at=from_micros(row["authenticated_at"]),
            address=row["address"],
            agent=row["agent"],
        ),
        expires_at=from_micros(row["expires_at"]),
        used_at=from_micros(row["used_at"]) if row["used_at"] else None,
        access_id=row["access_id"],
    )


async def find_consent(conn: Reader, *, user_id: str, app_id: str) -> Consent | None:
    row = await conn.fetch_one(
        """
        SELECT scopes, organization_ids, revision, given_at FROM oauth_consents
        WHERE user_id = $1 AND app_id = $2
        """,
        user_id, app_id,
    )  # fmt: skip
    if row is None:
        return None
    return Consent(
        user_id=user_id,
        app_id=app_id,
        scopes=scopes_from_json(row["scopes"]),
        organization_ids=frozenset(json.loads(row["organization_ids"])),
        revision=row["revision"],
        given_at=from_micros(row["given_at"]),
    )


async def list_idle_consents(conn: Reader, *, user_id: str) -> list[IdleConsent]:
    """Return what a person agreed to for apps that have no access now, by the app's name."""
    rows = await conn.fetch_all(
        """
        SELECT a.id, a.name, c.given_at FROM oauth_consents c
        JOIN oauth_apps a ON a.id = c.app_id
        WHERE c.user_id = $1 AND NOT EXISTS (
            SELECT 1 FROM oauth_accesses x
            WHERE x.user_id = $1 AND x.app_id = c.app_id AND x.ended_at IS NULL
                AND x.expires_at > $2
        )
        ORDER BY a.name, a.id
        """,
        user_id, micros(),
    )  # fmt: skip
    return [
        IdleConsent(app_id=row["id"], app_name=row["name"], given_at=from_micros(row["given_at"]))
        for row in rows
    ]


async def put_consent(conn: Connection, permission: Permission, *, revision: int) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_consents (user_id, app_id, scopes, organization_ids, revision, given_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (user_id, app_id) DO UPDATE SET scopes = excluded.scopes,
            organization_ids = excluded.organization_ids, revision = excluded.revision,
            given_at = excluded.given_at
        """,
        permission.user_id, permission.app_id, to_json_list(permission.scopes),
        to_json_list(permission.organization_ids), revision, micros(),
    )  # fmt: skip


async def remove_consent(conn: Connection, *, user_id: str, app_id: str) -> None:
    await conn.execute(
        "DELETE FROM oauth_consents WHERE user_id = $1 AND app_id = $2", user_id, app_id
    )


async def remove_all_consents(conn: Connection, *, user_id: str) -> None:
    await conn.execute("DELETE FROM oauth_consents WHERE user_id = $1", user_id)


async def mark_answered(conn: Connection, question_id: str, *, expires_at: int) -> bool:
    """Mark a question as answered; False when it was answered before."""
    await conn.execute("DELETE FROM oauth_answers WHERE expires_at < $1", micros())
    count = await conn.execute(
        "INSERT INTO oauth_answers (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        question_id, expires_at,
    )  # fmt: skip
    return count == 1


async def find_user_name(conn: Reader, user_id: str) -> str | None:
    name: str | None = await conn.fetch_value("SELECT name FROM users WHERE id = $1", user_id)
    return name


async def list_app_summaries(conn: Reader, app_ids: Collection[str]) -> dict[str, AppSummary]:
    rows = await conn.fetch_all(
        """
        SELECT a.id, a.client_id, a.name, l.app_id IS NOT NULL AS has_logo
        FROM oauth_apps a LEFT JOIN oauth_logos l ON l.app_id = a.id WHERE a.id IN each($1)
        """,
        json.dumps(list(app_ids)),
    )
    return {
        row["id"]: AppSummary(
            id=row["id"],
            client_id=row["client_id"],
            name=row["name"],
            has_logo=bool(row["has_logo"]),
        )
        for row in rows
    }


async def list_organization_names(conn: Reader, ids: Collection[str]) -> dict[str, str]:
    rows = await conn.fetch_all(
        "SELECT id, name FROM organizations WHERE id IN each($1)", json.dumps(list(ids))
    )
    return {row["id"]: row["name"] for row in rows}
