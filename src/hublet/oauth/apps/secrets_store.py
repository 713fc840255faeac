"""SQL of client secrets. Values never come here, only their digests."""

import json
from collections.abc import Iterable

from hublet.core.clock import micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.oauth.apps.records import ClientSecret, LeakedSecret


async def list_working(conn: Reader, app_id: str) -> list[str]:
    """Return the digests of the secrets that have not expired."""
    rows = await conn.fetch_all(
        """
        SELECT digest FROM oauth_secrets
        WHERE app_id = $1 AND (expires_at IS NULL OR expires_at > $2)
        """,
        app_id, micros(),
    )  # fmt: skip
    return [row["digest"] for row in rows]


async def add(conn: Connection, app_id: str, secret: ClientSecret, *, digest: str) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_secrets (id, app_id, digest, hint, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, NULL)
        """,
        secret.id, app_id, digest, secret.hint, to_micros(secret.created_at),
    )  # fmt: skip


async def expire_all(conn: Connection, app_id: str, *, at: int) -> None:
    """Let every secret of an app work until then at the latest."""
    await conn.execute(
        """
        UPDATE oauth_secrets SET expires_at = $2
        WHERE app_id = $1 AND (expires_at IS NULL OR expires_at > $2)
        """,
        app_id, at,
    )  # fmt: skip


async def expire_reported(conn: Connection, digests: Iterable[str]) -> list[LeakedSecret]:
    """Let secrets work no more; return those that did until now, with whose app it is."""
    rows = await conn.fetch_all(
        """
        UPDATE oauth_secrets SET expires_at = $1
        WHERE digest IN each($2) AND (expires_at IS NULL OR expires_at > $1)
        RETURNING id, hint,
            (SELECT name FROM oauth_apps a WHERE a.id = oauth_secrets.app_id) AS app_name,
            (SELECT owner_id FROM oauth_apps a WHERE a.id = oauth_secrets.app_id) AS owner_id
        """,
        micros(), json.dumps(list(digests)),
    )  # fmt: skip
    return [
        LeakedSecret(
            secret_id=row["id"],
            hint=row["hint"],
            app_name=row["app_name"],
            owner_id=row["owner_id"],
        )
        for row in rows
    ]


async def remove_expired(conn: Connection, app_id: str) -> None:
    await conn.execute(
        "DELETE FROM oauth_secrets WHERE app_id = $1 AND expires_at <= $2", app_id, micros()
    )


async def remove(conn: Connection, app_id: str, secret_id: str) -> bool:
    """Remove one secret; False when the app has none of this id."""
    return await conn.execute(
        "DELETE FROM oauth_secrets WHERE app_id = $1 AND id = $2", app_id, secret_id
    ) == 1  # fmt: skip


async def remove_all(conn: Connection, app_id: str) -> None:
    await conn.execute("DELETE FROM oauth_secrets WHERE app_id = $1", app_id)
