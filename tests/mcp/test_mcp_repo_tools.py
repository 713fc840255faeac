"""Tools for repositories: they show what the caller may see, and do what the caller may do."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from assistants import ask, refused, switch_on
from hublet.core.database import Database
from people import Headers, sign_in
from repositories import a_push, a_repo


async def read(app: FastAPI, headers: Headers | None, **operation: Any) -> Any:
    [result] = (await ask(app, headers, "hf_fs", operations=[operation]))["results"]
    return result


async def test_everybody_learns_for_whom_they_act(app: FastAPI, ada: Headers) -> None:
    known, unknown = await ask(app, ada, "hf_whoami"), await ask(app, None, "hf_whoami")

    assert (known["user"], known["role"]) == ("ada", "write")
    assert unknown == {
        "user": None,
        "organizations": [],
        "token": None,
        "role": None,
        "scopes": [],
    }


async def test_search_and_details_show_what_the_caller_may_see(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    without = await sign_in(database, "ada", scopes=["jobs"])
    repo = await a_repo(client, ada, "ada/secret", private=True)
    await a_push(database, repo, {"README.md": b"# Card"}, card={"tags": ["x"]})

    seen: list[Any] = []
    for headers in (None, bob, without, ada):
        found = await ask(app, headers, "hub_repo_search", author="ada")
        seen.append([each["id"] for each in found["repos"]])
    shown = await ask(app, ada, "hub_repo_details", repo_ids=["ada/secret", "ada/none"])
    hidden = await refused(app, bob, "hub_repo_details", repo_ids=["ada/secret"])

    assert seen == [[], [], [], ["ada/secret"]]
    [details] = shown["repos"]
    assert (details["card"], details["private"]) == ("# Card", True)
    assert "hf://ada/secret/README.md" in [each["uri"] for each in details["files"]]
    assert shown["errors"] == ["ada/none: Repository not found"]
    assert hidden == "ada/secret: Repository not found"


async def test_files_are_listed_described_and_read_in_parts(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/poems", type="dataset")
    await a_push(database, repo, {"a/one.txt": "Rösen".encode(), "b.bin": b"\x00"})
    at = "hf://datasets/ada/poems"

    listed = await read(app, None, op="ls", uri=at)
    stat = await read(app, None, op="stat", uri=f"{at}/a")
    first = await read(app, None, op="cat", uri=f"{at}/a/one.txt", max_bytes=3)
    rest = await read(app, None, op="cat", uri=f"{at}/a/one.txt", offset=first["next_offset"])
    binary = await refused(app, None, "hf_fs", operations=[{"op": "cat", "uri": f"{at}/b.bin"}])

    assert ("a", "folder") in [(each["path"], each["type"]) for each in listed["entries"]]
    assert stat["entry"]["type"] == "folder"
    assert (first["text"], first["size"], first["has_more"]) == ("Rö", 6, True)
    assert (rest["text"], rest["next_offset"]) == ("sen", None)
    assert "is no text: it has 1 bytes" in binary


async def test_one_of_several_operations_may_fail(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    operations = [
        {"op": "ls", "uri": "hf://ada/engine"},
        {"op": "cat", "uri": "hf://ada/engine/none"},
        {"op": "ls", "uri": "hf://ada/engine@nowhere"},
    ]

    results = (await ask(app, ada, "hf_fs", operations=operations))["results"]

    assert [each["error"] is None for each in results] == [True, False, False]


async def test_the_gate_of_a_repository_holds(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    repo = await a_repo(client, ada, "ada/gated")
    await a_push(database, repo, {"x.txt": b"content"})
    await client.put("/api/models/ada/gated/settings", headers=ada, json={"gated": "manual"})
    operation = {"op": "cat", "uri": "hf://ada/gated/x.txt"}

    for headers in (None, bob):
        sentence = await refused(app, headers, "hf_fs", operations=[operation])
        assert "gated" in sentence or "access" in sentence.lower()
    assert (await read(app, ada, **operation))["text"] == "content"


async def test_a_repository_is_created_private_with_the_rights_of_the_caller(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    await switch_on(client, ada, "create_repo")

    made = await ask(app, ada, "create_repo", uri="hf://datasets/ada/new")
    again = await refused(app, ada, "create_repo", uri="hf://datasets/ada/new")
    other = await refused(app, ada, "create_repo", uri="hf://bob/new")
    path = await refused(app, ada, "create_repo", uri="hf://ada/new/file")

    assert made["url"] == "http://hub.test/datasets/ada/new"
    assert (await client.get("/api/datasets/ada/new", headers=ada)).json()["private"] is True
    assert "already" in again
    assert "neither you nor one of your organizations" in other
    assert path == "uri must name a repository, without a revision and a path."


@pytest.mark.parametrize("kind", ["buckets", "containers"])
async def test_files_of_buckets_are_read_too(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/things", type=kind.removesuffix("s"))
    await client.put(f"/api/{kind}/ada/things/files/a/x.txt", headers=ada, content=b"Roses")
    at = f"hf://{kind}/ada/things"

    listed = await read(app, ada, op="ls", uri=at)
    text = await read(app, ada, op="cat", uri=f"{at}/a/x.txt")
    revision = await refused(
        app, ada, "hf_fs", operations=[{"op": "ls", "uri": f"hf://{kind}/ada/things@main"}]
    )

    assert [each["type"] for each in listed["entries"]] == ["folder"]
    assert text["text"] == "Roses"
    assert "has no revisions" in revision
