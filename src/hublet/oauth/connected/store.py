"""SQL of what accesses are called."""

import json
from collections.abc import Collection

from hublet.core.database import Reader
from hublet.oauth.connected.records import ConnectedApp


async def apps_of(conn: Reader, app_ids: Collection[str]) -> dict[str, ConnectedApp]:
    rows = await conn.fetch_all(
        """
        SELECT a.id, a.client_id, a.name, l.app_id IS NOT NULL AS has_logo
        FROM oauth_apps a LEFT JOIN oauth_logos l ON l.app_id = a.id WHERE a.id IN each($1)
        """,
        json.dumps(list(app_ids)),
    )
    return {
        row["id"]: ConnectedApp(
            id=row["id"],
            client_id=row["client_id"],
            name=row["name"],
            has_logo=bool(row["has_logo"]),
        )
        for row in rows
    }


async def names_of_organizations(conn: Reader, ids: Collection[str]) -> dict[str, str]:
    rows = await conn.fetch_all(
        "SELECT id, name FROM organizations WHERE id IN each($1)", json.dumps(list(ids))
    )
    return {row["id"]: row["name"] for row in rows}
