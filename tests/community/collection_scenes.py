"""Collections for tests, one line each."""

from typing import Any

import httpx2

from people import Headers

PATH = "/api/collections"


async def a_collection(
    client: httpx2.AsyncClient, headers: Headers, title: str = "Wheels", **body: Any
) -> dict[str, Any]:
    """Return a new collection, of ada unless said otherwise."""
    response = await client.post(
        PATH, headers=headers, json={"title": title, "namespace": "ada"} | body
    )
    assert response.status_code == 200, response.text
    created: dict[str, Any] = response.json()
    return created


async def an_item(
    client: httpx2.AsyncClient, headers: Headers, slug: str, type_: str, name: str, **body: Any
) -> dict[str, Any]:
    """Return the collection after something was added to it."""
    response = await client.post(
        f"{PATH}/{slug}/items", headers=headers, json={"item": {"type": type_, "id": name}} | body
    )
    assert response.status_code == 200, response.text
    changed: dict[str, Any] = response.json()
    return changed


async def items_of(
    client: httpx2.AsyncClient, slug: str, headers: Headers | None = None
) -> list[str]:
    """Return the names of the items that a caller sees, in their order."""
    response = await client.get(f"{PATH}/{slug}", headers=headers or {})
    assert response.status_code == 200, response.text
    items = response.json()["items"]
    assert [item["position"] for item in items] == list(range(len(items)))
    return [item["id"] for item in items]


async def titles_in(
    client: httpx2.AsyncClient, headers: Headers | None = None, **params: Any
) -> list[str]:
    """Return the titles of a list, in its order."""
    response = await client.get(PATH, headers=headers or {}, params=params)
    assert response.status_code == 200, response.text
    return [each["title"] for each in response.json()]
