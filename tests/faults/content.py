"""Content of repositories, sent and read back over HTTP as the public client does."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from faults.forked_hubs import ForkedHub
from processes import READY_SECONDS, Server

NDJSON = {"Content-Type": "application/x-ndjson"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whoever calls: the first administrator of a hub, as the first start tells."""

    name: str
    token: str

    def client(self, server: Server | ForkedHub) -> httpx2.Client:
        """Return what any number of threads may ask with at the same time."""
        return httpx2.Client(
            base_url=server.address,
            headers={"Authorization": f"Bearer {self.token}"},
            # A slow answer is an answer: only a hub that was killed gives none.
            timeout=READY_SECONDS,
            # Without kept connections, as in `Server.client`.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,
        )


def first_person(server: Server) -> Person:
    assert server.user is not None
    assert server.token is not None
    return Person(name=server.user, token=server.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRepo:
    id: str
    # In the form owner/name.
    name: str

    @property
    def api(self) -> str:
        return f"/api/models/{self.name}"


def create_repo(client: httpx2.Client, name: str, *, repo_type: str = "model") -> KnownRepo:
    answer = client.post("/api/repos/create", json={"name": name, "type": repo_type})
    assert answer.status_code == 200, answer.text
    return KnownRepo(id=answer.json()["id"], name=answer.json()["name"])


def commit_body(files: Mapping[str, bytes], *, summary: str) -> bytes:
    lines: list[dict[str, object]] = [
        {"key": "header", "value": {"summary": summary, "description": ""}}
    ]
    for path, content in files.items():
        encoded = base64.b64encode(content).decode()
        file = {"path": path, "content": encoded, "encoding": "base64"}
        lines.append({"key": "file", "value": file})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def post_commit(
    client: httpx2.Client, repo: KnownRepo, branch: str, body: bytes
) -> httpx2.Response:
    path = f"{repo.api}/commit/{quote(branch, safe='')}"
    return client.post(path, content=body, headers=NDJSON)


def commit(client: httpx2.Client, repo: KnownRepo, branch: str, files: Mapping[str, bytes]) -> str:
    """Commit files, and return the id of the commit."""
    summary = f"Add {', '.join(files)}"
    answer = post_commit(client, repo, branch, commit_body(files, summary=summary))
    assert answer.status_code == 200, answer.text
    oid: str = answer.json()["commitOid"]
    return oid


def branches_of(client: httpx2.Client, repo: KnownRepo) -> dict[str, str]:
    """Return the commits that the branches point to, by the branch's name."""
    answer = client.get(f"{repo.api}/refs")
    assert answer.status_code == 200, answer.text
    return {each["name"]: each["targetCommit"] for each in answer.json()["branches"]}


def history_of(client: httpx2.Client, repo: KnownRepo, revision: str) -> list[str]:
    """Return the ids of a revision's commits, newest first."""
    commits = _all_pages(client, f"{repo.api}/commits/{quote(revision, safe='')}")
    return [each["id"] for each in commits]


def paths_of(client: httpx2.Client, repo: KnownRepo, revision: str) -> list[str]:
    """Return the paths of all files of a revision."""
    tree = f"{repo.api}/tree/{quote(revision, safe='')}?recursive=true"
    return [each["path"] for each in _all_pages(client, tree) if each["type"] == "file"]


def content_of(client: httpx2.Client, repo: KnownRepo, revision: str, path: str) -> bytes:
    answer = client.get(f"/{repo.name}/resolve/{quote(revision, safe='')}/{quote(path)}")
    assert answer.status_code == 200, answer.text
    return answer.content


def files_of(client: httpx2.Client, repo: KnownRepo, revision: str) -> dict[str, bytes]:
    """Return every file of a revision with its content."""
    paths = paths_of(client, repo, revision)
    return {path: content_of(client, repo, revision, path) for path in paths}


def _all_pages(client: httpx2.Client, path: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    following: str | None = path
    while following:
        answer = client.get(following)
        assert answer.status_code == 200, answer.text
        entries += answer.json()
        following = answer.links.get("next", {}).get("url")
    return entries
