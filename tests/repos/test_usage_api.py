"""Usage of the storage as raw, stored and shared bytes, and the limit of what an owner may hold."""

import base64
import json
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.repos import pruning
from hublet.repos.commits import intake, preupload
from people import Headers, an_organization, sign_in
from repos import commits
from repos.content import put_blob, sha256
from repos.lfs import basic, batch, object_requests, upload_href
from repos.limits import set_limit
from repos.xorbs import put_cut_blob
from repositories import a_repo


def refusal(used: int, more: int, limit: int, owner: str = "ada") -> str:
    wanted = f", and this upload has {more} more" if more else ""
    return (
        f"The repositories of {owner} hold {used} bytes{wanted}; the limit is {limit}. Delete "
        "files or repositories, or ask the hub's operator for a higher limits.owner_bytes."
    )


async def storage(
    client: httpx2.AsyncClient, headers: Headers, path: str = "/api/models/ada/engine"
) -> Any:
    response = await client.get(f"{path}/storage", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def own_storage(client: httpx2.AsyncClient, headers: Headers) -> Any:
    return (await client.get("/api/settings/storage", headers=headers)).json()


async def put_file(
    client: httpx2.AsyncClient, headers: Headers, path: str, content: bytes
) -> httpx2.Response:
    return await client.put(f"/api/buckets/ada/box/files/{path}", headers=headers, content=content)


async def test_bytes_that_one_repository_needs_are_stored_and_of_two_they_are_shared(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engine = await a_repo(client, ada, "ada/engine")
    copy = await a_repo(client, ada, "ada/copy")
    await put_blob(database, engine, b"1234567")
    _, xorb = await put_cut_blob(database, engine, [b"one", b"two"])
    for repo_id in (engine, copy):
        await put_blob(database, repo_id, b"in both")
    await put_cut_blob(database, copy, [b"one", b"two"])

    assert await storage(client, ada) == {"raw": 20, "stored": 7, "shared": 7 + xorb.stored_size}
    assert await storage(client, ada, "/api/models/ada/copy") == {
        "raw": 13,
        "stored": 0,
        "shared": 7 + xorb.stored_size,
    }
    assert await own_storage(client, ada) == {
        "raw": 33,
        "stored": 7,
        "shared": 7 + xorb.stored_size,
        "limit": None,
    }


async def test_a_bucket_holds_its_files_and_what_they_have_in_common_once_at_rest(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    for path, content in (("a", b"12345"), ("b", b"12345"), ("c", b"123")):
        await put_file(client, ada, path, content)
    await set_limit(database, 100)

    assert await storage(client, ada, "/api/buckets/ada/box") == {
        "raw": 13,
        # Two xorbs of one chunk each, with their headers.
        "stored": 5 + 8 + 3 + 8,
        "shared": 0,
    }
    assert (await own_storage(client, ada))["limit"] == 100


async def test_that_others_have_the_same_bytes_is_not_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = await sign_in(database, "grace")
    for headers, name in ((ada, "ada/engine"), (grace, "grace/engine")):
        await put_cut_blob(database, await a_repo(client, headers, name), [b"known"])
        await put_blob(database, await a_repo(client, headers, f"{name}-2"), b"whole")

    assert (await own_storage(client, ada))["shared"] == 0
    assert await own_storage(client, ada) == await own_storage(client, grace)


async def test_only_administrators_know_the_storage_of_an_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "lab", members={"ada": Role.admin, "grace": Role.write})
    grace = await sign_in(database, "grace")
    await put_blob(database, await a_repo(client, ada, "lab/engine"), b"12345")
    paths = ["/api/models/lab/engine/storage", "/api/organizations/lab/settings/storage"]

    seen = [(await client.get(path, headers=ada)).json()["raw"] for path in paths]
    refused = [(await client.get(path, headers=grace)).status_code for path in paths]

    assert (seen, refused) == ([5, 5], [403, 403])


@pytest.mark.parametrize("who", ["a stranger", "nobody"])
async def test_strangers_do_not_see_the_storage_of_a_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers, who: str
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    headers = await sign_in(database, "grace") if who == "a stranger" else {}

    response = await client.get("/api/models/ada/engine/storage", headers=headers)

    assert response.status_code == (404 if headers else 401)


async def test_metrics_show_the_bytes_of_the_last_pruning(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engine = await a_repo(client, ada, "ada/engine")
    await put_blob(database, engine, b"1234567")
    _, xorb = await put_cut_blob(database, engine, [b"one", b"two"])

    await pruning.prune_blobs(database)
    lines = (await client.get("/metrics")).text.splitlines()

    assert [line for line in lines if line.startswith("hublet_storage")] == [
        'hublet_storage_bytes{kind="raw"} 13.0',
        'hublet_storage_bytes{kind="blobs"} 7.0',
        f'hublet_storage_bytes{{kind="xorbs"}} {float(xorb.stored_size)}',
        "hublet_storage_damaged_objects 0.0",
    ]


async def test_a_full_owner_uploads_nothing_through_lfs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, b"1234567")
    await set_limit(database, 10)

    refused = await batch(client, ada, object_requests(b"1234", b"1234567"))
    allowed = await batch(client, ada, object_requests(b"123", b"123"))

    [new, known] = refused.json()["objects"]
    assert new["error"] == {"code": 403, "message": refusal(7, 4, 10)}
    assert "actions" not in new
    assert "error" not in known
    assert ["upload" in each["actions"] for each in allowed.json()["objects"]] == [True, True]


async def test_two_uploads_that_began_together_do_not_both_fit(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await set_limit(database, 10)
    contents = [b"1234567", b"abcdefg"]
    links = [await upload_href(client, ada, content) for content in contents]

    answers = [
        await client.put(link, content=content)
        for link, content in zip(links, contents, strict=True)
    ]

    assert [answer.status_code for answer in answers] == [200, 403]
    assert (await own_storage(client, ada))["raw"] == 7


async def test_preupload_refuses_what_has_no_room(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preupload, "LARGEST_IN_GIT", 5)
    await a_repo(client, ada, "ada/engine")
    await set_limit(database, 10)
    # A first attempt uploaded it, and did not come to its commit.
    assert (
        await client.put(await upload_href(client, ada, b"1234567"), content=b"1234567")
    ).status_code == 200

    async def advise(*sizes: int) -> httpx2.Response:
        files = [
            {"path": f"{number}.txt", "size": size, "sample": ""}
            for number, size in enumerate(sizes)
        ]
        return await client.post(
            "/api/models/ada/engine/preupload/main", headers=ada, json={"files": files}
        )

    refused = await advise(8, 7)

    assert (refused.status_code, refused.json()["error"]) == (403, refusal(0, 15, 10))
    assert (await advise(7)).status_code == 200
    # What goes into git does not count.
    assert (await advise(5, 5, 5)).status_code == 200


async def test_a_commit_brings_no_more_than_there_is_room(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intake, "LARGEST_IN_GIT", 5)
    repo = await commits.a_repo(client, database, ada)
    await set_limit(database, 10)
    await repo.commit(ada, commits.file("a.bin", b"1234567"))
    before = await repo.state()

    body = commits.ndjson(commits.header(), commits.file("b.bin", b"abcdef"))
    refused = await repo.send(ada, body)

    assert (refused.status_code, refused.json()["error"]) == (403, refusal(13, 0, 10))
    assert await repo.state() == before
    await repo.commit(ada, commits.file("b.txt", b"small"))
    await repo.commit(ada, commits.deleted_file("a.bin"))


async def test_a_bucket_takes_no_more_than_there_is_room(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    await set_limit(database, 10)
    assert (await put_file(client, ada, "a", b"1234567")).status_code == 200

    refused = await put_file(client, ada, "b", b"1234")
    line = {"type": "addFile", "path": "b", "content": base64.b64encode(b"1234").decode()}
    in_batch = await client.post(
        "/api/buckets/ada/box/batch",
        headers=ada | {"content-type": "application/x-ndjson"},
        content=json.dumps(line),
    )

    assert (refused.status_code, refused.json()["error"]) == (403, refusal(7, 4, 10))
    assert (in_batch.status_code, in_batch.json()["error"]) == (403, refusal(11, 0, 10))
    # It may be replaced, and shrink, also when there is too much already.
    assert (await put_file(client, ada, "a", b"1234567890")).status_code == 200
    await set_limit(database, 5)
    assert (await put_file(client, ada, "a", b"12345678")).status_code == 200
    removed = await client.delete("/api/buckets/ada/box/files/a", headers=ada)
    assert removed.status_code == 200


async def test_a_body_of_unknown_length_is_refused_in_the_end(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    await set_limit(database, 10)

    async def pieces() -> Any:
        yield b"12345678"
        yield b"90123"

    refused = await client.put("/api/buckets/ada/box/files/a", headers=ada, content=pieces())

    assert (refused.status_code, refused.json()["error"]) == (403, refusal(13, 0, 10))
    assert (await own_storage(client, ada))["raw"] == 0


async def test_copies_and_duplicates_count_too(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engine = await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/other")
    await put_blob(database, engine, b"1234567")
    await set_limit(database, 10)

    duplicate = await client.post(
        "/api/models/ada/engine/duplicate", headers=ada, json={"repository": "ada/third"}
    )
    bucket = await a_repo(client, ada, "ada/box", type="bucket")
    line = {
        "type": "copyFile",
        "path": "b",
        "sha256": sha256(b"1234567"),
        "sourceRepoType": "model",
        "sourceRepoId": "ada/engine",
    }
    copied = await client.post(
        "/api/buckets/ada/box/batch",
        headers=ada | {"content-type": "application/x-ndjson"},
        content=json.dumps(line),
    )

    assert bucket
    assert [(each.status_code, each.json()["error"]) for each in (duplicate, copied)] == [
        (403, refusal(14, 0, 10))
    ] * 2


async def test_the_limit_is_of_the_owner_not_of_who_uploads(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "lab", members={"ada": Role.admin})
    await put_blob(database, await a_repo(client, ada, "ada/engine"), b"1234567")
    await a_repo(client, ada, "lab/engine")
    await set_limit(database, 10)

    allowed = await batch(client, basic(ada), object_requests(b"12345"), repo="lab/engine.git")
    refused = await batch(
        client, basic(ada), object_requests(b"12345678901"), repo="lab/engine.git"
    )

    assert "actions" in allowed.json()["objects"][0]
    [answer] = refused.json()["objects"]
    assert answer["error"] == {"code": 403, "message": refusal(0, 11, 10, "lab")}


async def test_a_repository_moves_only_to_an_owner_who_has_room_for_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "lab", members={"ada": Role.admin})
    await put_blob(database, await a_repo(client, ada, "lab/loom"), b"12345")
    await put_blob(database, await a_repo(client, ada, "ada/engine"), b"1234567")
    await a_repo(client, ada, "ada/empty")
    await set_limit(database, 10)

    async def move(name: str, target: str) -> httpx2.Response:
        body = {"fromRepo": f"ada/{name}", "toRepo": target, "type": "model"}
        return await client.post("/api/repos/move", headers=ada, json=body)

    refused = await move("engine", "lab/engine")
    assert (refused.status_code, refused.json()) == (
        403,
        {"error": refusal(5, 7, 10, "lab").replace("this upload", "this repository")},
    )
    assert (await client.get("/api/models/lab/engine", headers=ada)).status_code == 404
    # A new name is no new owner, and what holds nothing needs no room.
    await set_limit(database, 5)
    assert (await move("engine", "ada/motor")).status_code == 200
    assert (await move("empty", "lab/empty")).status_code == 200
    await set_limit(database, 12)
    assert (await move("motor", "lab/engine")).status_code == 200
