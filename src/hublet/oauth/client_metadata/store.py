"""SQL of cached metadata documents, and of apps that describe themselves and that nobody uses."""

from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.oauth.apps import store as apps
from hublet.oauth.client_metadata.document import CachedDocument, FetchedDocument
from hublet.oauth.records import OAuthApp


async def find(conn: Reader, client_id: str) -> CachedDocument | None:
    row = await conn.fetch_one(
        """
        SELECT d.fresh_until, a.logo_uri
        FROM oauth_documents d JOIN oauth_apps a ON a.id = d.app_id WHERE d.client_id = $1
        """,
        client_id,
    )
    app = await apps.find(conn, client_id) if row else None
    if row is None or app is None:
        return None
    return CachedDocument(
        app=app, fresh_until=from_micros(row["fresh_until"]), logo_uri=row["logo_uri"]
    )


async def put(
    conn: Connection, app: OAuthApp, fetched: FetchedDocument, *, logo_uri: str | None
) -> None:
    """Store the document of an app that exists."""
    await conn.execute("UPDATE oauth_apps SET logo_uri = $2 WHERE id = $1", app.id, logo_uri)
    await conn.execute(
        """
        INSERT INTO oauth_documents (client_id, app_id, body, fetched_at, fresh_until)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (client_id) DO UPDATE SET body = excluded.body,
            fetched_at = excluded.fetched_at, fresh_until = excluded.fresh_until
        """,
        app.client_id, app.id, fetched.body.decode(), to_micros(fetched.fetched_at),
        to_micros(fetched.fresh_until),
    )  # fmt: skip


async def list_surplus(conn: Reader, *, keep: int, limit: int) -> list[str]:
    """Return the unused apps of documents beyond so many, those that were updated last excepted."""
    rows = await conn.fetch_all(
        """
        SELECT a.id FROM oauth_apps a
        WHERE a.kind = 'document' AND NOT EXISTS (
            SELECT 1 FROM oauth_accesses x WHERE x.app_id = a.id AND x.ended_at IS NULL
        )
        ORDER BY a.updated_at DESC, a.id DESC LIMIT $1 OFFSET $2
        """,
        limit, keep,
    )  # fmt: skip
    return [row["id"] for row in rows]


async def list_unused(conn: Reader, *, before: int, limit: int) -> list[str]:
    """Return apps that registered by themselves and that nobody has used since then."""
    rows = await conn.fetch_all(
        """
        SELECT a.id FROM oauth_apps a
        WHERE a.kind IN ('dynamic', 'document') AND a.updated_at < $1
            AND NOT EXISTS (
                SELECT 1 FROM oauth_accesses x
                WHERE x.app_id = a.id
                    AND (x.ended_at IS NULL AND x.expires_at >= $1 OR x.last_used_at >= $1)
            )
        ORDER BY a.id LIMIT $2
        """,
        before, limit,
    )  # fmt: skip
    return [row["id"] for row in rows]
