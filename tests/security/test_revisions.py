"""Revisions with control characters: nothing has such a name, and nothing repeats it raw."""

import io
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.config import LogSettings
from hublet.core.database import Database
from hublet.core.logs import AccessLog
from people import Headers
from repositories import a_push, a_repo

REPO = "/api/models/ada/engine"
CONTROLS = ["\0", "\x01", "\t", "\n", "\r", "\x1b", "\x7f", "\x85", "\u2028"]
REVISIONS = [f"ma{each}in" for each in CONTROLS] + [
    each.format(end) for end in "\n\r" for each in ("{}", "main{}", "refs/heads/main{}")
]
COMMIT = {
    "content": b'{"key": "header", "value": {"summary": "Try", "description": ""}}\n',
    "headers": {"Content-Type": "application/x-ndjson"},
}
FILES = {"json": {"files": [{"path": "a.txt", "size": 1, "sample": ""}]}}

# Each request names a revision at {}.
ROUTES: dict[str, dict[str, Any]] = {
    f"GET {REPO}/revision/{{}}": {},
    f"GET {REPO}/tree/{{}}": {},
    f"GET {REPO}/tree/{{}}/folder": {},
    f"GET {REPO}/treesize/{{}}": {},
    f"GET {REPO}/commits/{{}}": {},
    f"POST {REPO}/paths-info/{{}}": {"json": {"paths": ["a.txt"]}},
    "GET /ada/engine/resolve/{}/a.txt": {},
    "HEAD /ada/engine/resolve/{}/a.txt": {},
    "GET /ada/engine/raw/{}/a.txt": {},
    "GET /api/resolve-cache/models/ada/engine/{}/a.txt": {},
    f"POST {REPO}/commit/{{}}": COMMIT,
    f"POST {REPO}/preupload/{{}}": FILES,
    f"POST {REPO}/tag/{{}}": {"json": {"tag": "v1"}},
    f"POST {REPO}/super-squash/{{}}": {"json": {}},
    f"DELETE {REPO}/branch/{{}}": {},
    f"DELETE {REPO}/tag/{{}}": {},
}


@pytest.fixture(autouse=True)
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo_id, {"a.txt": b"hello"})


async def ask(
    client: httpx2.AsyncClient, route: str, revision: str, headers: Headers
) -> httpx2.Response:
    method, _, path = route.partition(" ")
    more = ROUTES[route]
    return await client.request(
        method,
        path.format(quote(revision, safe="")),
        **more | {"headers": headers | more.get("headers", {})},
    )


@pytest.mark.parametrize("route", ROUTES)
async def test_a_revision_with_a_control_character_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, route: str
) -> None:
    for revision in REVISIONS:
        response = await ask(client, route, revision, ada)

        code = None if "\0" in revision else "RevisionNotFound"
        found = (response.status_code, response.headers.get("x-error-code"))
        assert found == (404, code), (revision, response.text)
        for name, value in response.headers.items():
            assert value.isprintable(), (revision, name, value)


async def test_a_branch_with_a_control_character_is_not_made(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for character in CONTROLS:
        address = f"{REPO}/branch/{quote(f'new{character}', safe='')}"
        response = await client.post(address, headers=ada, json={})

        assert response.status_code == (404 if character == "\0" else 400), character


@pytest.mark.parametrize("form", ["console", "json"])
async def test_a_control_character_does_not_reach_the_log(app: FastAPI, form: str) -> None:
    stream = io.StringIO()
    log = AccessLog(LogSettings(format=form), stream=stream)
    transport = httpx2.ASGITransport(app=with_edge(app, access_log=log))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        for character in CONTROLS:
            await client.get(f"{REPO}/tree/{quote(f'main{character}x', safe='')}")
    log.flush()

    lines = stream.getvalue().split("\n")
    assert len(lines) == len(CONTROLS) + 1
    assert all(line.isprintable() for line in lines)
