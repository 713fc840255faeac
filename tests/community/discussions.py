"""Discussions and pull requests for tests, one line each."""

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx2

from hublet.core.database import Database
from people import Headers

PATH = "/api/models/ada/engine/discussions"


async def a_discussion(
    client: httpx2.AsyncClient, headers: Headers, path: str = PATH, **body: Any
) -> str:
    """Open a discussion in the repository of this path; return its address."""
    asked = {"title": "Does it run?", "description": "It should."} | body
    response = await client.post(path, headers=headers, json=asked)
    assert response.status_code == 200, response.text
    return f"{path}/{response.json()['num']}"


async def a_pull_request(
    client: httpx2.AsyncClient, headers: Headers, path: str = PATH, **body: Any
) -> str:
    return await a_discussion(client, headers, path, pullRequest=True, **body)


async def get_discussion(
    client: httpx2.AsyncClient, address: str, headers: Headers | None = None, **asked: Any
) -> dict[str, Any]:
    response = await client.get(address, headers=headers, params=asked)
    assert response.status_code == 200, response.text
    details: dict[str, Any] = response.json()
    return details


async def history_of(
    client: httpx2.AsyncClient, address: str, headers: Headers | None = None
) -> list[tuple[str, Any]]:
    """Return the type of each event with what is in it, or the text of a comment."""
    events = (await get_discussion(client, address, headers))["events"]
    return [
        (e["type"], e["data"]["latest"]["raw"] if e["type"] == "comment" else e["data"])
        for e in events
    ]


async def disable_discussions(database: Database, repo_id: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET discussions_disabled = TRUE WHERE id = $1", repo_id)


async def post_commit(
    client: httpx2.AsyncClient,
    headers: Headers,
    files: dict[str, str],
    *,
    to: str = "main",
    summary: str = "Change files.",
    **query: Any,
) -> httpx2.Response:
    """Commit these files to ada/engine, as the public client does."""
    lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": summary}}]
    for path, content in files.items():
        value = {
            "path": path,
            "content": base64.b64encode(content.encode()).decode(),
            "encoding": "base64",
        }
        lines.append({"key": "file", "value": value})
    return await client.post(
        f"/api/models/ada/engine/commit/{quote(to, safe='')}",
        headers=headers | {"Content-Type": "application/x-ndjson"},
        params=query,
        content="".join(json.dumps(line) + "\n" for line in lines),
    )


async def commit(
    client: httpx2.AsyncClient,
    headers: Headers,
    files: dict[str, str],
    *,
    to: str = "main",
    summary: str = "Change files.",
) -> str:
    """Commit these files to ada/engine; return the commit's id."""
    response = await post_commit(client, headers, files, to=to, summary=summary)
    assert response.status_code == 200, response.text
    oid: str = response.json()["commitOid"]
    return oid


async def sha_of(database: Database, repo_id: str, ref: str) -> str | None:
    async with database.read() as conn:
        sha: str | None = await conn.fetch_value(
            "SELECT sha FROM repo_refs WHERE repo_id = $1 AND name = $2", repo_id, ref
        )
    return sha
