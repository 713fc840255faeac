"""Large files over Git LFS for tests, one line each."""

import base64
from typing import Any

import httpx2

from people import Headers
from repos.content import sha256

LFS = {
    "accept": "application/vnd.git-lfs+json",
    "content-type": "application/vnd.git-lfs+json",
}


def object_requests(*contents: bytes) -> list[dict[str, Any]]:
    return [{"oid": sha256(content), "size": len(content)} for content in contents]


async def batch(
    client: httpx2.AsyncClient,
    headers: Headers,
    objects: list[dict[str, Any]],
    *,
    operation: str = "upload",
    repo: str = "ada/engine.git",
    **more: Any,
) -> httpx2.Response:
    body = {
        "operation": operation,
        "transfers": ["basic", "multipart"],
        "objects": objects,
        "hash_algo": "sha256",
    }
    return await client.post(
        f"/{repo}/info/lfs/objects/batch", headers=headers | LFS, json=body | more
    )


async def upload_href(client: httpx2.AsyncClient, headers: Headers, content: bytes) -> str:
    [answer] = (await batch(client, headers, object_requests(content))).json()["objects"]
    href: str = answer["actions"]["upload"]["href"]
    return href


def basic(headers: Headers, user: str = "ada") -> Headers:
    """The same token as git sends it: as a password."""
    token = headers["Authorization"].removeprefix("Bearer ")
    value = base64.b64encode(f"{user}:{token}".encode()).decode()
    return {"Authorization": f"Basic {value}"}
