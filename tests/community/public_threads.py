"""Papers, posts and blogs for tests, one line each, and the responses about them."""

from typing import Any

import httpx2

from hublet.accounts.records import User
from people import Headers

# The kinds of threads that everybody can read.
KINDS = ["paper", "post", "blog"]

PAPER = {
    "arxivId": "2401.12345",
    "title": "Notes on the Engine",
    "summary": "It weaves algebraic patterns.",
    "authors": ["Ada Lovelace", "Luigi Menabrea"],
}


async def a_thread(
    client: httpx2.AsyncClient, headers: Headers, kind: str, *, text: str = "Look at this."
) -> str:
    """Open a thread of this kind that says this; return its address."""
    if kind == "paper":
        paper = await client.post(
            "/api/papers/index", headers=headers, json=PAPER | {"summary": text}
        )
        return f"/api/papers/{paper.json()['id']}"
    path = "/api/posts" if kind == "post" else "/api/blog"
    body = {"content": text, "title": f"A {kind} to talk about"}
    thread = (await client.post(path, headers=headers, json=body)).json()
    return f"{path}/{thread['author']['name']}/{thread['slug']}"


async def thread_id(client: httpx2.AsyncClient, address: str) -> str:
    thread = (await client.get(address)).json()
    found: str = thread.get("discussionId") or thread["id"]
    return found


async def a_comment(
    client: httpx2.AsyncClient, headers: Headers, address: str, text: str = "I agree."
) -> str:
    """Comment on the thread at this address; return the comment's id."""
    response = await client.post(f"{address}/comment", headers=headers, json={"comment": text})
    comment_id: str = response.json()["newMessage"]["id"]
    return comment_id


def author_card(account: User, **changes: str) -> dict[str, Any]:
    return {
        "_id": account.id,
        "name": account.name,
        "fullname": account.fullname,
        "avatarUrl": f"http://hub.test/avatars/{account.id}",
        "type": "user",
        **changes,
    }
