"""What answers about accounts look like, for tests that read them."""

from typing import Any

import httpx2

from hublet.accounts.records import User
from people import Headers


def user_card(user: User, **more: str) -> dict[str, Any]:
    """A person in a list; members also have a role."""
    return {
        "_id": user.id,
        "user": user.name,
        "fullname": user.fullname,
        "avatarUrl": f"http://hub.test/avatars/{user.id}",
        "isPro": False,
        "type": "user",
        **more,
    }


async def audit_lines(
    client: httpx2.AsyncClient, headers: Headers, *, organization: str = "engines"
) -> list[tuple[str, str, Any]]:
    """Action, target and details of what was done through the API, oldest first."""
    path = f"/api/organizations/{organization}/audit-log?limit=100"
    lines = (await client.get(path, headers=headers)).json()
    return [
        (line["action"], line["target"], line["details"])
        for line in reversed(lines)
        if line["actor"]["name"] != "operator"
    ]


async def pages_of(
    client: httpx2.AsyncClient, url: str, key: str, headers: Headers | None = None
) -> list[list[Any]]:
    """Follow the links to the end; return one field of every item, page by page."""
    pages: list[list[Any]] = []
    following: str | None = url
    while following:
        response = await client.get(following, headers=headers)
        pages.append([item[key] for item in response.json()])
        following = response.links.get("next", {}).get("url")
    return pages
