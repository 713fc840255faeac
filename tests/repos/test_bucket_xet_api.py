"""Buckets and containers whose contents come and go by Xet."""

import json
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.errors import Unavailable
from hublet.repos.xet import ingestion
from hublet.storage.xet_hashes import ZERO_HASH, file_hash, to_text
from people import Headers
from repos.content import sha256
from repos.xet import CHUNKS, CONTENT, FILE, cas_of
from storage.xet_content import nodes

BOX = "/api/buckets/ada/box"
OTHER = "/api/buckets/ada/other"
EMPTY = to_text(ZERO_HASH)
MTIME = 1_795_000_000_123
FILE_INFO = "application/vnd.xet-fileinfo+json"


@pytest.fixture
async def box(client: httpx2.AsyncClient, ada: Headers) -> str:
    await client.post(BOX, headers=ada, json={})
    return BOX


async def batch(
    client: httpx2.AsyncClient, headers: Headers, *operations: dict[str, Any], to: str = BOX
) -> dict[str, Any]:
    lines = "\n".join(json.dumps(operation) for operation in operations)
    response = await client.post(f"{to}/batch", headers=headers, content=lines)
    found: dict[str, Any] = response.json()
    return found


def add(path: str, xet_hash: str = FILE, **more: object) -> dict[str, Any]:
    return {"type": "addFile", "path": path, "xetHash": xet_hash, **more}


def copy(path: str, source: str, xet_hash: str = FILE, type_: str = "bucket") -> dict[str, Any]:
    return {
        "type": "copyFile",
        "path": path,
        "xetHash": xet_hash,
        "sourceRepoType": type_,
        "sourceRepoId": source,
    }


async def upload(
    client: httpx2.AsyncClient, headers: Headers, *, to: str = "buckets/ada/box"
) -> None:
    assert await (await cas_of(client, headers, repo=to)).upload() == FILE


async def registrations(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM repo_blobs")
    return count


@pytest.mark.parametrize("kind", ["buckets", "containers"])
async def test_what_was_uploaded_becomes_a_file(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    of = f"/api/{kind}/ada/box"
    await client.post(of, headers=ada, json={})
    await upload(client, ada, to=f"{kind}/ada/box")

    done = await batch(
        client, ada, add("a.bin", mtime=MTIME, contentType="a/b"), add("b/c.txt"), to=of
    )

    assert done == {"success": True, "processed": 2, "succeeded": 2, "failed": []}
    listed = (await client.get(f"{of}/tree?recursive=true")).json()
    asked = await client.post(f"{of}/paths-info", json={"paths": ["a.bin", "b/c.txt", "x"]})
    assert asked.json() == listed
    assert listed[0] == {
        "type": "file",
        "path": "a.bin",
        "size": len(CONTENT),
        "sha256": sha256(CONTENT),
        "xetHash": FILE,
        "mtime": "2026-11-18T11:06:40.123Z",
        "uploadedAt": listed[0]["uploadedAt"],
        "contentType": "a/b",
    }
    assert (listed[1]["mtime"], listed[1]["contentType"]) == (
        listed[1]["uploadedAt"],
        "text/plain",
    )
    assert (await client.get(f"/{kind}/ada/box/resolve/b%2Fc.txt")).content == CONTENT
    reading = await cas_of(client, ada, "read", repo=f"{kind}/ada/box")
    assert await reading.download(FILE) == CONTENT
    # Now the files hold the content, no longer the upload.
    assert await registrations(database) == 0


async def test_an_upload_waits_for_the_batch_that_can_take_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await upload(client, ada)

    refused = await batch(client, ada, add("../a"))
    taken = await batch(client, ada, add("a"))
    again = await batch(client, ada, add("a"), add("b"))

    assert (refused["succeeded"], taken["succeeded"], again["succeeded"]) == (0, 1, 2)


async def test_an_empty_file_needs_no_upload(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    done = await batch(client, ada, add("a", EMPTY), copy("b", "ada/box", EMPTY))
    put = await client.put(f"{box}/files/c", headers=ada, content=b"")

    assert done["success"] is True
    listed = (await client.get(f"{box}/tree")).json()
    assert [(file["path"], file["size"], file["xetHash"]) for file in listed] == [
        ("a", 0, EMPTY),
        ("b", 0, EMPTY),
        ("c", 0, EMPTY),
    ]
    assert put.json()["xetHash"] == EMPTY
    head = await client.head("/buckets/ada/box/resolve/a")
    assert (head.headers["x-xet-hash"], head.headers["x-linked-size"]) == (EMPTY, "0")
    assert (await client.get(f"{box}/files/a")).content == b""


@pytest.mark.parametrize("way", ["put", "batch"])
async def test_what_came_by_other_ways_is_read_by_xet_at_once(
    client: httpx2.AsyncClient, ada: Headers, box: str, way: str
) -> None:
    if way == "put":
        await client.put(f"{box}/files/a", headers=ada, content=b"one")
    else:
        await batch(client, ada, {"type": "addFile", "path": "a", "content": "b25l"})

    [file] = (await client.get(f"{box}/tree")).json()

    assert file["xetHash"] == to_text(file_hash(nodes([b"one"])))
    cas = await cas_of(client, ada, "read", repo="buckets/ada/box")
    assert await cas.download(file["xetHash"]) == b"one"


async def test_a_download_tells_where_xet_has_the_file(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await upload(client, ada)
    await batch(client, ada, add("a b.bin"))
    url = "/buckets/ada/box/resolve/a%20b.bin"

    head = await client.head(url)
    got = await client.get(url, headers={"Range": "bytes=4-8"})

    assert (head.status_code, got.status_code, got.content) == (200, 206, CONTENT[4:9])
    base = database.hub.settings.base_url
    cas = await cas_of(client, ada, "read", repo="buckets/ada/box")
    for answer in (head, got):
        assert answer.headers["etag"] == f'"{sha256(CONTENT)}"'
        assert answer.headers["x-linked-etag"] == f'"{sha256(CONTENT)}"'
        assert answer.headers["x-linked-size"] == str(len(CONTENT))
        assert answer.headers["x-xet-hash"] == FILE
        assert answer.links["xet-auth"]["url"] == f"{base}/api/buckets/ada/box/xet-read-token"
        assert answer.links["xet-reconstruction-info"]["url"] == (
            f"{cas.url}/v1/reconstructions/{FILE}"
        )


async def test_a_client_may_ask_for_the_file_info_alone(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await upload(client, ada)
    await batch(client, ada, add("a"))
    url = "/buckets/ada/box/resolve/a"

    info = await client.get(url, headers={"Accept": f"{FILE_INFO}, */*", "Range": "bytes=0-0"})
    file = await client.get(url, headers={"Accept": "*/*", "Range": "bytes=0-0"})

    assert (info.status_code, info.headers["content-type"]) == (200, FILE_INFO)
    etag = f'"{sha256(CONTENT)}"'
    assert info.json() == {"hash": FILE, "etag": etag, "size": len(CONTENT)}
    assert info.headers["etag"] == etag
    assert {"xet-auth", "xet-reconstruction-info"} <= info.links.keys()
    assert (file.status_code, file.content) == (206, CONTENT[:1])
    # No cache may take the one for the other.
    assert info.headers["cache-control"] == "private, no-store"


async def test_a_file_that_is_not_cut_yet_is_served_without_xet(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await client.put(f"{box}/files/a", headers=ada, content=b"one")
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM layouts")
        await conn.execute("UPDATE blobs SET is_whole = TRUE")

    [file] = (await client.get(f"{box}/tree")).json()
    got = await client.get(
        "/buckets/ada/box/resolve/a", headers={"Accept": f"{FILE_INFO}, */*", "Range": "bytes=0-0"}
    )

    assert file["xetHash"] is None
    assert (got.status_code, got.content) == (206, b"o")
    assert not {"x-xet-hash", "link"} & got.headers.keys()


async def test_a_worker_that_is_killed_costs_the_hash_and_not_the_file(
    client: httpx2.AsyncClient, ada: Headers, box: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*_: object) -> None:
        raise Unavailable("killed")

    monkeypatch.setattr(ingestion.processes, "run_long", run)

    put = await client.put(f"{box}/files/a", headers=ada, content=b"x" * 100_000)

    assert (put.status_code, put.json()["xetHash"]) == (200, None)
    assert (await client.get(f"{box}/files/a")).content == b"x" * 100_000


async def test_a_copy_moves_no_bytes_and_outlives_its_source(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await client.post(OTHER, headers=ada, json={"private": True})
    await upload(client, ada)
    await batch(client, ada, add("a"))
    objects = stored_objects(database)

    copied = await batch(client, ada, copy("b", "ada/box"), to=OTHER)
    await client.delete(box, headers=ada)

    assert copied["success"] is True
    assert stored_objects(database) == objects
    cas = await cas_of(client, ada, "read", repo="buckets/ada/other")
    assert await cas.download(FILE) == CONTENT
    assert (await client.get(f"{OTHER}/files/b", headers=ada)).content == CONTENT


def stored_objects(database: Database) -> dict[str, int]:
    """Everything that lies in the store, with its time."""
    folder = database.hub.settings.database.data_dir
    return {
        str(path): path.stat().st_mtime_ns
        for kind in ("blobs", "xorbs")
        for path in (folder / kind).rglob("*")
        if path.is_file()
    }


async def test_a_file_is_copied_from_a_model_that_has_it_in_a_commit(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    body = {"name": "engine", "type": "model"}
    await client.post("/api/repos/create", headers=ada, json=body)
    await upload(client, ada, to="models/ada/engine")

    before = await batch(client, ada, copy("a", "ada/engine", type_="model"))
    lines = [
        {"key": "header", "value": {"summary": "A large file"}},
        {
            "key": "lfsFile",
            "value": {
                "path": "x.bin",
                "algo": "sha256",
                "oid": sha256(CONTENT),
                "size": len(CONTENT),
            },
        },
    ]
    committed = await client.post(
        "/api/models/ada/engine/commit/main",
        headers=ada | {"Content-Type": "application/x-ndjson"},
        content="\n".join(json.dumps(line) for line in lines),
    )
    after = await batch(client, ada, copy("a", "ada/engine", type_="model"))

    assert committed.status_code == 200, committed.text
    # What was uploaded and is in no commit, the model does not have yet.
    assert before["failed"] == [
        {"path": "a", "error": f"model ada/engine has no content {FILE} now."}
    ]
    assert after["success"] is True
    assert (await client.get(f"{box}/files/a")).content == b"".join(CHUNKS)
