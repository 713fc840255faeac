"""SQL of what people agreed to."""

import json

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader
from hublet.oauth.consents.records import Consent, IdleConsent
from hublet.oauth.records import Permission
from hublet.tokens.records import Scope


async def find(conn: Reader, *, user_id: str, app_id: str) -> Consent | None:
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
        # A scope that a newer hub knew is no scope here.
        scopes=frozenset(map(Scope, set(json.loads(row["scopes"])) & set(Scope))),
        organization_ids=frozenset(json.loads(row["organization_ids"])),
        revision=row["revision"],
        given_at=from_micros(row["given_at"]),
    )


async def list_idle(conn: Reader, *, user_id: str) -> list[IdleConsent]:
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


async def put(conn: Connection, permission: Permission, *, revision: int) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_consents (user_id, app_id, scopes, organization_ids, revision, given_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (user_id, app_id) DO UPDATE SET scopes = excluded.scopes,
            organization_ids = excluded.organization_ids, revision = excluded.revision,
            given_at = excluded.given_at
        """,
        permission.user_id,
        permission.app_id,
        json.dumps(sorted(permission.scopes)),
        json.dumps(sorted(permission.organization_ids)),
        revision,
        micros(),
    )


async def remove(conn: Connection, *, user_id: str, app_id: str) -> None:
    await conn.execute(
        "DELETE FROM oauth_consents WHERE user_id = $1 AND app_id = $2", user_id, app_id
    )


async def remove_all(conn: Connection, *, user_id: str) -> None:
    await conn.execute("DELETE FROM oauth_consents WHERE user_id = $1", user_id)


async def add_answer(conn: Connection, question_id: str, *, expires_at: int) -> bool:
    """Note that a question was answered; False when it was before."""
    await conn.execute("DELETE FROM oauth_answers WHERE expires_at < $1", micros())
    count = await conn.execute(
        "INSERT INTO oauth_answers (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        question_id, expires_at,
    )  # fmt: skip
    return count == 1


async def name_of_user(conn: Reader, user_id: str) -> str | None:
    name: str | None = await conn.fetch_value("SELECT name FROM users WHERE id = $1", user_id)
    return name
