"""Apps for tests, one line each, through the API."""

from typing import Any

import httpx2

from people import Headers

PATH = "/api/settings/oauth-apps"
CALLBACK = "https://app.example/callback"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def create_app(client: httpx2.AsyncClient, headers: Headers, **body: Any) -> Any:
    """Return a new app; name only what the test is about."""
    whole = {"name": "Engine", "redirectUris": [CALLBACK]} | body
    response = await client.post(PATH, headers=headers, json=whole)
    assert response.status_code == 200, response.text
    return response.json()


async def show_app(client: httpx2.AsyncClient, headers: Headers, client_id: str) -> Any:
    response = await client.get(f"{PATH}/{client_id}", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def create_secret(
    client: httpx2.AsyncClient, headers: Headers, client_id: str, **body: Any
) -> Any:
    response = await client.post(f"{PATH}/{client_id}/secrets", headers=headers, json=body)
    assert response.status_code == 200, response.text
    return response.json()
