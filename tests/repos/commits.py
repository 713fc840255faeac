"""Commits over HTTP, one line each."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.events import RepoContentUpdated
from hublet.repos.git import bare_repos, trees
from outbox_events import published_events
from people import Headers

Line = dict[str, Any]


def header(summary: str = "Change", **more: object) -> Line:
    return {"key": "header", "value": {"summary": summary, "description": "", **more}}


def file(path: str, content: bytes | str) -> Line:
    data = content.encode() if isinstance(content, str) else content
    return {
        "key": "file",
        "value": {"content": base64.b64encode(data).decode(), "path": path, "encoding": "base64"},
    }


def lfs_file(path: str, sha256: str, **more: object) -> Line:
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": sha256, **more}}


def deleted_file(path: str) -> Line:
    return {"key": "deletedFile", "value": {"path": path}}


def deleted_folder(path: str) -> Line:
    return {"key": "deletedFolder", "value": {"path": path}}


def ndjson(*lines: Line) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class ARepo:
    """A repository of a test, and what can be done with it in one line."""

    def __init__(self, client: httpx2.AsyncClient, database: Database, id: str) -> None:  # noqa: A002
        self.client = client
        self.database = database
        self.id = id
        self.path = "/api/models/ada/engine"

    async def send(
        self, who: Headers, body: bytes, *, revision: str = "main", query: str = ""
    ) -> httpx2.Response:
        kind = {"content-type": "application/x-ndjson"}
        return await self.client.post(
            f"{self.path}/commit/{revision}{query}", headers=who | kind, content=body
        )

    async def commit(self, who: Headers, *lines: Line, revision: str = "main") -> str:
        """Commit these operations; return the commit's id."""
        response = await self.send(who, ndjson(header(), *lines), revision=revision)
        assert response.status_code == 200, response.text
        oid: str = response.json()["commitOid"]
        return oid

    async def refs(self) -> dict[str, str]:
        async with self.database.read() as conn:
            rows = await conn.fetch_all(
                "SELECT name, sha FROM repo_refs WHERE repo_id = $1", self.id
            )
        return {row["name"]: row["sha"] for row in rows}

    async def head(self) -> str:
        return (await self.refs())["refs/heads/main"]

    async def files(self, commit: str | None = None) -> dict[str, bytes]:
        """What lies in a commit, by default the last of main; the first commit's file apart."""
        folder = bare_repos.folder_of(self.database.hub.settings.database.data_dir, self.id)
        found = trees.list_tree(folder, commit or await self.head(), recursive=True)
        return {
            entry.path: trees.read_blob(folder, entry.oid)
            for entry in found
            if entry.type == "file" and entry.path != ".gitattributes"
        }

    async def attributes(self) -> str:
        folder = bare_repos.folder_of(self.database.hub.settings.database.data_dir, self.id)
        entry = trees.get_entry(folder, await self.head(), ".gitattributes")
        return trees.read_blob(folder, entry.oid).decode()

    async def state(self) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Everything that a refused request must leave as it was."""
        return await self.refs(), await published_events(self.database, RepoContentUpdated)


async def a_repo(
    client: httpx2.AsyncClient, database: Database, who: Headers, **more: object
) -> ARepo:
    """A new model ada/engine."""
    body: Mapping[str, object] = {"name": "engine", **more}
    response = await client.post("/api/repos/create", headers=who, json=body)
    assert response.status_code == 200, response.text
    return ARepo(client, database, response.json()["id"])
