"""Quick searches over HTTP, one line each, with an index that is in step."""

from typing import Any

import httpx2

from hublet.core.database import Database
from people import Headers
from workers import drain

PATH = "/api/quicksearch"


async def quick_search(
    client: httpx2.AsyncClient, headers: Headers | None = None, **query: Any
) -> dict[str, Any]:
    response = await client.get(PATH, params=query, headers=headers or {})
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


async def names(
    client: httpx2.AsyncClient,
    q: str,
    headers: Headers | None = None,
    *,
    kind: str = "models",
    **query: Any,
) -> list[str]:
    """Return the names of the hits of a kind, in their order."""
    result = await quick_search(client, headers, q=q, **query)
    keys = {"users": "user", "orgs": "name"}
    return [hit[keys.get(kind, "id")] for hit in result[kind]]


async def in_step(database: Database) -> None:
    await drain(database)
