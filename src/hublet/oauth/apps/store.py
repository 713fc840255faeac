"""SQL of apps, of their secrets (only digests) and logos, and of the settings of organizations about apps:
the terms of token exchange, and the member with an e-mail address.

Whatever changes an app, its secrets or its logo wakes those who remember apps (`clients.ClientCache`).
"""

import json
from collections.abc import Iterable, Sequence

from hublet.accounts.records import OrganizationPlan
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.oauth.apps.records import (
    ClientSecret,
    LeakedSecret,
    Logo,
    ManagedApp,
    WorkingSecret,
    logo_url,
)
from hublet.oauth.records import DEFAULT_EXCHANGE_SECONDS, AppKind, ExchangeTerms, OAuthApp
from hublet.oauth.scopes import scopes_from_json, to_json_list

# An expired secret counts: only its owner can make the app public, time cannot.
_COLUMNS = """
    a.id, a.client_id, a.kind, a.owner_id, a.organization_id, a.name, a.client_uri,
    a.redirect_uris, a.scopes, a.dynamic_query, a.token_exchange, a.token_seconds, a.revision,
    a.created_at, a.updated_at, l.app_id IS NOT NULL AS has_logo,
    EXISTS (SELECT 1 FROM oauth_secrets s WHERE s.app_id = a.id) AS confidential
"""
_FROM = "FROM oauth_apps a LEFT JOIN oauth_logos l ON l.app_id = a.id"
_MANAGED_COLUMNS = f"""
    {_COLUMNS}, o.name AS organization, u.name AS owner {_FROM}
    LEFT JOIN organizations o ON o.id = a.organization_id
    LEFT JOIN users u ON u.id = a.owner_id
"""
# Those who registered an app manage it; one that is bound belongs to all administrators there.
_IS_MANAGED_BY = """
    (
        a.organization_id IS NULL AND a.owner_id = $1
        OR a.organization_id IN (
            SELECT m.organization_id FROM memberships m WHERE m.user_id = $1 AND m.role = 'admin'
        )
    )
"""


async def find(conn: Reader, client_id: str) -> OAuthApp | None:
    row = await conn.fetch_one(f"SELECT {_COLUMNS} {_FROM} WHERE a.client_id = $1", client_id)
    return _app_record(conn, row) if row else None


async def find_by_id(conn: Reader, app_id: str) -> OAuthApp | None:
    row = await conn.fetch_one(f"SELECT {_COLUMNS} {_FROM} WHERE a.id = $1", app_id)
    return _app_record(conn, row) if row else None


async def find_managed(
    conn: Reader, client_id: str, *, user_id: str | None = None
) -> ManagedApp | None:
    """Return an app that this user manages, or any app when no user is named."""
    condition, values = ("TRUE", []) if user_id is None else (_IS_MANAGED_BY, [user_id])
    row = await conn.fetch_one(
        f"""
        SELECT {_MANAGED_COLUMNS}
        WHERE {condition} AND a.client_id = ${len(values) + 1}
        """,
        *values, client_id,
    )  # fmt: skip
    return (await _with_secrets(conn, [row]))[0] if row else None


async def list_managed(conn: Reader, *, user_id: str) -> list[ManagedApp]:
    """Return the apps that a user manages, oldest first."""
    rows = await conn.fetch_all(
        f"SELECT {_MANAGED_COLUMNS} WHERE {_IS_MANAGED_BY} ORDER BY a.id", user_id
    )
    return await _with_secrets(conn, rows)


async def list_of_organization(conn: Reader, organization_id: str) -> list[ManagedApp]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_MANAGED_COLUMNS} WHERE a.organization_id = $1 ORDER BY a.id
        """,
        organization_id,
    )
    return await _with_secrets(conn, rows)


async def list_all(conn: Reader, *, after: str = "", limit: int = 100) -> list[ManagedApp]:
    rows = await conn.fetch_all(
        f"SELECT {_MANAGED_COLUMNS} WHERE a.id > $1 ORDER BY a.id LIMIT $2",
        after, limit,
    )  # fmt: skip
    return await _with_secrets(conn, rows)


async def count_of(conn: Reader, *, owner_id: str | None, organization_id: str | None) -> int:
    """Count the apps of an organization, or those of a user that are bound to none."""
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM oauth_apps
        WHERE organization_id = $2 OR organization_id IS NULL AND owner_id = $1 AND $2 IS NULL
        """,
        owner_id, organization_id,
    )  # fmt: skip
    return count


async def add(conn: Connection, app: OAuthApp) -> bool:
    """Add an app; False when its client id is taken."""
    return await conn.execute(
        """
        INSERT INTO oauth_apps
            (id, client_id, kind, owner_id, organization_id, name, client_uri,
             redirect_uris, scopes, dynamic_query, token_exchange, token_seconds, revision,
             created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT DO NOTHING
        """,
        app.id, app.client_id, app.kind, app.owner_id, app.organization_id, app.name,
        app.client_uri, json.dumps(app.redirect_uris), to_json_list(app.scopes),
        app.dynamic_query, app.token_exchange, app.token_seconds, app.revision,
        to_micros(app.created_at), to_micros(app.updated_at),
    ) == 1  # fmt: skip


async def update(conn: Connection, app: OAuthApp) -> None:
    """Store what may change about an app; `updated_at` is now."""
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        """
        UPDATE oauth_apps SET name = $2, client_uri = $3, redirect_uris = $4, scopes = $5,
            dynamic_query = $6, token_exchange = $7, revision = $8, updated_at = $9
        WHERE id = $1
        """,
        app.id, app.name, app.client_uri, json.dumps(app.redirect_uris),
        to_json_list(app.scopes), app.dynamic_query, app.token_exchange, app.revision,
        micros(),
    )  # fmt: skip


async def raise_revision(conn: Connection, app_id: str) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        "UPDATE oauth_apps SET revision = revision + 1, updated_at = $2 WHERE id = $1",
        app_id, micros(),
    )  # fmt: skip


async def remove(conn: Connection, app_ids: Sequence[str]) -> None:
    """Remove apps with their secrets, logos, consents, accesses, codes and device codes."""
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute("DELETE FROM oauth_apps WHERE id IN each($1)", json.dumps(list(app_ids)))


async def _with_secrets(conn: Reader, rows: Sequence[Row]) -> list[ManagedApp]:
    secrets: dict[str, list[ClientSecret]] = {row["id"]: [] for row in rows}
    for row in await conn.fetch_all(
        """
        SELECT s.id, s.app_id, s.hint, s.created_at, s.expires_at FROM oauth_secrets s
        WHERE s.app_id IN each($1) ORDER BY s.id
        """,
        json.dumps(list(secrets)),
    ):
        secrets[row["app_id"]].append(_secret_record(row))
    return [
        ManagedApp(
            app=_app_record(conn, row),
            owner=row["owner"],
            organization=row["organization"],
            secrets=tuple(secrets[row["id"]]),
        )
        for row in rows
    ]


def _secret_record(row: Row) -> ClientSecret:
    expires = row["expires_at"]
    return ClientSecret(
        id=row["id"],
        hint=row["hint"],
        created_at=from_micros(row["created_at"]),
        expires_at=None if expires is None else from_micros(expires),
    )


def _app_record(conn: Reader, row: Row) -> OAuthApp:
    return OAuthApp(
        id=row["id"],
        client_id=row["client_id"],
        kind=AppKind(row["kind"]),
        owner_id=row["owner_id"],
        organization_id=row["organization_id"],
        name=row["name"],
        client_uri=row["client_uri"],
        # Logos are served by the hub itself, also those that a document names.
        logo_uri=logo_url(conn.hub.settings.base_url, row["id"]) if row["has_logo"] else None,
        redirect_uris=tuple(json.loads(row["redirect_uris"])),
        scopes=scopes_from_json(row["scopes"]),
        dynamic_query=bool(row["dynamic_query"]),
        token_exchange=bool(row["token_exchange"]),
        token_seconds=row["token_seconds"],
        revision=row["revision"],
        confidential=bool(row["confidential"]),
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
    )


async def find_exchange_seconds(conn: Reader, organization_id: str) -> int | None:
    seconds: int | None = await conn.fetch_value(
        "SELECT exchange_seconds FROM oauth_organizations WHERE organization_id = $1",
        organization_id,
    )
    return seconds


async def set_exchange_seconds(conn: Connection, organization_id: str, seconds: int) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_organizations (organization_id, exchange_seconds) VALUES ($1, $2)
        ON CONFLICT (organization_id) DO UPDATE SET exchange_seconds = excluded.exchange_seconds
        """,
        organization_id, seconds,
    )  # fmt: skip


async def find_logo(conn: Reader, app_id: str) -> Logo | None:
    row = await conn.fetch_one(
        "SELECT media_type, content FROM oauth_logos WHERE app_id = $1", app_id
    )
    return Logo(media_type=row["media_type"], content=row["content"]) if row else None


async def put_logo(conn: Connection, app_id: str, logo: Logo) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        """
        INSERT INTO oauth_logos (app_id, media_type, content, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (app_id) DO UPDATE SET media_type = excluded.media_type,
            content = excluded.content, updated_at = excluded.updated_at
        """,
        app_id, logo.media_type, logo.content, micros(),
    )  # fmt: skip


async def remove_logo(conn: Connection, app_id: str) -> bool:
    """Remove the logo; False when there is none."""
    conn.wake(CREDENTIALS_CHANNEL)
    return await conn.execute("DELETE FROM oauth_logos WHERE app_id = $1", app_id) == 1


async def list_working_secrets(conn: Reader, app_id: str) -> list[WorkingSecret]:
    """Return the secrets that have not expired."""
    rows = await conn.fetch_all(
        """
        SELECT digest, expires_at FROM oauth_secrets
        WHERE app_id = $1 AND (expires_at IS NULL OR expires_at > $2)
        """,
        app_id, micros(),
    )  # fmt: skip
    return [WorkingSecret(digest=row["digest"], expires_at=row["expires_at"]) for row in rows]


async def add_secret(conn: Connection, app_id: str, secret: ClientSecret, *, digest: str) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        """
        INSERT INTO oauth_secrets (id, app_id, digest, hint, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, NULL)
        """,
        secret.id, app_id, digest, secret.hint, to_micros(secret.created_at),
    )  # fmt: skip


async def expire_secrets(conn: Connection, app_id: str, *, at: int) -> None:
    """Make every secret of an app expire then at the latest."""
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        """
        UPDATE oauth_secrets SET expires_at = $2
        WHERE app_id = $1 AND (expires_at IS NULL OR expires_at > $2)
        """,
        app_id, at,
    )  # fmt: skip


async def expire_reported_secrets(conn: Connection, digests: Iterable[str]) -> list[LeakedSecret]:
    """Make secrets expire now; return those that worked until now, with the owners of the apps."""
    conn.wake(CREDENTIALS_CHANNEL)
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


async def remove_expired_secrets(conn: Connection, app_id: str) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute(
        "DELETE FROM oauth_secrets WHERE app_id = $1 AND expires_at <= $2", app_id, micros()
    )


async def remove_secret(conn: Connection, app_id: str, secret_id: str) -> bool:
    """Remove one secret; False when the app has none of this id."""
    conn.wake(CREDENTIALS_CHANNEL)
    return await conn.execute(
        "DELETE FROM oauth_secrets WHERE app_id = $1 AND id = $2", app_id, secret_id
    ) == 1  # fmt: skip


async def remove_secrets(conn: Connection, app_id: str) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await conn.execute("DELETE FROM oauth_secrets WHERE app_id = $1", app_id)


async def list_terms(conn: Reader, app_ids: Iterable[str]) -> dict[str, ExchangeTerms]:
    """Return the terms of the organizations that these apps are bound to, by the app's id."""
    rows = await conn.fetch_all(
        """
        SELECT a.id AS app_id, a.token_exchange, o.id, o.name, o.plan, s.exchange_seconds
        FROM oauth_apps a JOIN organizations o ON o.id = a.organization_id
        LEFT JOIN oauth_organizations s ON s.organization_id = o.id
        WHERE a.id IN each($1)
        """,
        json.dumps(list(app_ids)),
    )
    return {row["app_id"]: _terms_record(row) for row in rows if row["token_exchange"]}


def _terms_record(row: Row) -> ExchangeTerms:
    seconds = row["exchange_seconds"]
    return ExchangeTerms(
        organization_id=row["id"],
        organization_name=row["name"],
        plan=OrganizationPlan(row["plan"]),
        seconds=DEFAULT_EXCHANGE_SECONDS if seconds is None else seconds,
    )


async def list_members(
    conn: Reader, organization_ids: Iterable[str], *, address_keys: Iterable[str]
) -> dict[tuple[str, str], str]:
    """Return the members whose verified addresses these are, by organization and address.

    Disabled accounts are left out.
    """
    rows = await conn.fetch_all(
        """
        SELECT m.organization_id, e.address_key, u.id FROM emails e
        JOIN users u ON u.id = e.user_id
        JOIN memberships m ON m.user_id = u.id
        WHERE e.address_key IN each($1) AND e.verified_at IS NOT NULL AND u.disabled_at IS NULL
            AND m.organization_id IN each($2)
        """,
        json.dumps(list(address_keys)), json.dumps(list(organization_ids)),
    )  # fmt: skip
    return {(row["organization_id"], row["address_key"]): row["id"] for row in rows}
