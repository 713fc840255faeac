"""The large files of a repository, for those who clear up."""

from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import RepoContentUpdated
from hublet.repos.lfs import history_rewrite
from hublet.repos.refs import store as refs
from outbox_events import published_events
from people import Headers, sign_in
from repos.content import pointer, put, put_blob, sha256
from repositories import a_repo

PATH = "/api/models/ada/engine/lfs-files"
CONTENTS = sorted((b"one", b"two", b"three"), key=sha256)


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    """A repository with three large files, two of which it shows."""
    repo_id = await a_repo(client, ada, "ada/engine")
    for content in CONTENTS:
        await put_blob(database, repo_id, content)
    await put(database, repo_id, {"other.bin": pointer(CONTENTS[1])}, ref="refs/pr/1")
    await put(database, repo_id, {"d/main.bin": pointer(CONTENTS[0])})
    return repo_id


def listed(content: bytes, answer: dict[str, Any], **more: str) -> dict[str, Any]:
    return {
        "fileOid": sha256(content),
        "oid": sha256(content),
        "filename": "",
        "size": len(content),
        "pushedAt": answer["pushedAt"],
    } | more


async def test_writers_see_every_large_file(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    files = (await client.get(PATH, headers=ada)).json()

    assert files == [
        listed(CONTENTS[0], files[0], filename="d/main.bin", ref="refs/heads/main"),
        listed(CONTENTS[1], files[1], filename="other.bin", ref="refs/pr/1"),
        listed(CONTENTS[2], files[2]),
    ]


async def test_pages_follow_each_other(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    first = await client.get(f"{PATH}?limit=2", headers=ada)
    second = await client.get(first.links["next"]["url"], headers=ada)

    assert [file["oid"] for file in first.json() + second.json()] == list(map(sha256, CONTENTS))
    assert "next" not in second.links


async def test_a_deleted_file_is_gone_from_every_commit(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    body = {"deletions": {"sha": [sha256(CONTENTS[0])], "rewriteHistory": False}}
    commit = (await client.get("/api/models/ada/engine/commits/main")).json()[0]["id"]

    response = await client.post(f"{PATH}/batch", headers=ada, json=body)

    assert (response.status_code, response.json()) == (200, {})
    assert len((await client.get(PATH, headers=ada)).json()) == 2
    old = await client.get(f"/ada/engine/resolve/{commit}/d/main.bin")
    assert old.status_code == 404


async def test_history_is_rewritten_as_if_the_file_had_never_been(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    keep = {"keep.txt": b"k", "d/sub/a.txt": b"a"}
    gone = pointer(CONTENTS[0])
    await put(database, repo_id, keep | {"d/x.bin": gone}, message="With the file.")
    await put(database, repo_id, {"only/x.bin": gone}, message="Nothing else.")
    await put(database, repo_id, keep, message="Without it.")
    await put(database, repo_id, keep, ref="refs/heads/other")
    before = await refs_of(database, repo_id)

    body = {"deletions": {"sha": [sha256(CONTENTS[0])], "rewriteHistory": True}}
    response = await client.post(f"{PATH}/batch", headers=ada, json=body)

    assert (response.status_code, response.json()) == (200, {})
    after = await refs_of(database, repo_id)
    # Only what had the file somewhere in its history has a new name.
    assert [name for name in before if after[name] != before[name]] == ["refs/heads/main"]
    assert await history_of(client) == [
        ("Without it.", ["d", "d/sub", "d/sub/a.txt", "keep.txt"]),
        ("Nothing else.", []),
        ("With the file.", ["d", "d/sub", "d/sub/a.txt", "keep.txt"]),
        ("Add files.", []),
        ("initial commit", [".gitattributes"]),
    ]
    [event] = (await published_events(database, RepoContentUpdated))[-1:]
    assert event["updated_refs"] == [
        {
            "ref": "refs/heads/main",
            "old_sha": before["refs/heads/main"],
            "new_sha": after["refs/heads/main"],
        }
    ]


async def refs_of(database: Database, repo_id: str) -> dict[str, str]:
    async with database.read() as conn:
        return {ref.name: ref.sha for ref in await refs.list_of(conn, repo_id)}


async def history_of(client: httpx2.AsyncClient) -> list[tuple[str, list[str]]]:
    """Titles of the commits of main, newest first, each with its paths."""
    commits = (await client.get("/api/models/ada/engine/commits/main")).json()
    found = []
    for commit in commits:
        tree = await client.get(f"/api/models/ada/engine/tree/{commit['id']}?recursive=true")
        found.append((commit["title"], [entry["path"] for entry in tree.json()]))
    return found


async def test_a_push_meanwhile_leaves_everything_as_it_is(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = await refs_of(database, repo_id)
    monkeypatch.setattr(
        history_rewrite,
        "rewrite_without",
        lambda *_: {"refs/heads/main": "1" * 40, "refs/pr/1": "2" * 40},
    )
    monkeypatch.setattr("hublet.repos.refs.store.update_ref", AsyncMock(side_effect=[True, False]))
    body = {"deletions": {"sha": [sha256(CONTENTS[0])], "rewriteHistory": True}}

    response = await client.post(f"{PATH}/batch", headers=ada, json=body)

    assert response.status_code == 409
    assert await refs_of(database, repo_id) == before
    assert len((await client.get(PATH, headers=ada)).json()) == 3


async def test_one_file_is_deleted_by_its_digest(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    response = await client.delete(f"{PATH}/{sha256(CONTENTS[2])}", headers=ada)
    wrong = await client.delete(f"{PATH}/main.bin", headers=ada)

    assert (response.status_code, wrong.status_code) == (200, 400)
    assert len((await client.get(PATH, headers=ada)).json()) == 2


async def test_another_repository_keeps_what_this_one_deletes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    await put_blob(database, other, CONTENTS[0])
    await put(database, other, {"a.bin": pointer(CONTENTS[0])})

    await client.delete(f"{PATH}/{sha256(CONTENTS[0])}", headers=ada)

    assert (await client.get("/ada/other/resolve/main/a.bin")).content == CONTENTS[0]


@pytest.mark.parametrize(
    ("sha", "sentence"),
    [
        ([], "deletions.sha must have at least 1 item(s)."),
        (["x"], "deletions.sha[0] must match ^[0-9a-f]{64}$."),
        (["0" * 64] * 1001, "deletions.sha must have at most 1000 items."),
    ],
)
async def test_a_wrong_list_is_refused(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, sha: list[str], sentence: str
) -> None:
    response = await client.post(f"{PATH}/batch", headers=ada, json={"deletions": {"sha": sha}})

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_only_writers_look_and_delete(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")
    reader = await sign_in(database, "ada", scopes=["read-repos"])
    body = {"deletions": {"sha": [sha256(CONTENTS[0])]}}

    statuses = [
        (
            (await client.get(PATH, headers=headers)).status_code,
            (await client.post(f"{PATH}/batch", headers=headers, json=body)).status_code,
        )
        for headers in (bob, reader, {})
    ]

    assert statuses == [(403, 403), (403, 403), (401, 401)]


async def test_files_are_lent_to_another_repository_without_sending_them(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other", type="dataset")
    files = [
        {"sha256": digest, "filename": "a.bin", "xetHash": "x"}
        for digest in (sha256(CONTENTS[0]), "0" * 64)
    ]
    body = {"target": {"type": "dataset", "name": "ada/other"}, "files": files}

    response = await client.post(f"{PATH}/duplicate", headers=ada, json=body)

    assert response.json() == {
        "success": False,
        "processed": 2,
        "succeeded": 1,
        "failed": [{"sha256": "0" * 64, "error": "The repository has no such file."}],
    }
    await put(database, other, {"a.bin": pointer(CONTENTS[0])})
    assert (await client.get("/datasets/ada/other/resolve/main/a.bin")).content == CONTENTS[0]


async def test_files_are_lent_only_between_what_one_reads_and_writes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/mine")
    await a_repo(client, ada, "ada/secret", visibility="private")
    target = {"type": "model", "name": "bob/mine"}

    into_others = await client.post(
        f"{PATH}/duplicate", headers=ada, json={"target": target, "files": []}
    )
    from_secret = await client.post(
        "/api/models/ada/secret/lfs-files/duplicate",
        headers=bob,
        json={"target": target, "files": []},
    )

    assert (into_others.status_code, from_secret.status_code) == (403, 404)


async def test_files_of_a_bucket_are_lent_to_a_repository_with_git(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.post("/api/buckets/ada/box", headers=ada, json={})
    await client.put("/api/buckets/ada/box/files/a.bin", headers=ada, content=CONTENTS[0])
    other = await a_repo(client, ada, "ada/other")
    body = {
        "target": {"type": "model", "name": "ada/other"},
        "files": [{"sha256": sha256(CONTENTS[0]), "filename": "a.bin", "xetHash": "x"}],
    }

    response = await client.post("/api/buckets/ada/box/lfs-files/duplicate", headers=ada, json=body)
    await client.delete("/api/buckets/ada/box", headers=ada)

    assert response.json() == {"success": True, "processed": 1, "succeeded": 1, "failed": []}
    await put(database, other, {"a.bin": pointer(CONTENTS[0])})
    assert (await client.get("/ada/other/resolve/main/a.bin")).content == CONTENTS[0]


async def test_files_of_a_private_bucket_are_lent_to_its_readers_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await client.post("/api/buckets/ada/box", headers=ada, json={"private": True})
    await a_repo(client, bob, "bob/mine")
    body = {"target": {"type": "model", "name": "bob/mine"}, "files": []}

    response = await client.post("/api/buckets/ada/box/lfs-files/duplicate", headers=bob, json=body)

    assert response.status_code == 404
