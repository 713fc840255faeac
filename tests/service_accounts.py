"""Service accounts of the organization engines, and their tokens, one call each."""

from typing import Any

import httpx2

from people import Headers

PATH = "/api/organizations/engines/service-accounts"


async def create(
    client: httpx2.AsyncClient, headers: Headers, name: str = "bot", role: str = "write"
) -> dict[str, Any]:
    response = await client.post(PATH, headers=headers, json={"name": name, "role": role})
    assert response.status_code == 200
    created: dict[str, Any] = response.json()
    return created


async def issue(
    client: httpx2.AsyncClient, headers: Headers, account_id: str, **body: object
) -> dict[str, Any]:
    response = await client.post(
        f"{PATH}/{account_id}/tokens", headers=headers, json={"name": "ci"} | body
    )
    assert response.status_code == 200
    created: dict[str, Any] = response.json()
    return created
