"""Many changes of a bucket's files at once."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import RepoFilesUpdated
from hublet.repos import blobs_store as blobs
from hublet.repos.files import service
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from hublet.storage.xet_hashes import file_hash, to_text
from outbox_events import published_events
from people import Headers, revoke, sign_in
from storage.xet_content import nodes

BOX = "/api/buckets/ada/box"

Line = dict[str, Any]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def xet_hash(content: bytes) -> str:
    """The file hash of a content that is one chunk."""
    return to_text(file_hash(nodes([content])))


def add(path: str, content: bytes = b"x", **more: object) -> Line:
    encoded = base64.b64encode(content).decode()
    return {"type": "addFile", "path": path, "content": encoded, **more}


def delete(path: str) -> Line:
    return {"type": "deleteFile", "path": path}


def copy(path: str, content_hash: str, source: str, type_: str = "bucket") -> Line:
    """A line as the public client writes it."""
    return {
        "type": "copyFile",
        "path": path,
        "xetHash": content_hash,
        "mtime": 1_795_000_000_123,
        "sourceRepoType": type_,
        "sourceRepoId": source,
    }


def lines(*operations: Line) -> bytes:
    return b"".join(json.dumps(operation).encode() + b"\n" for operation in operations)


@pytest.fixture
async def box(client: httpx2.AsyncClient, ada: Headers) -> str:
    await client.post(BOX, headers=ada, json={})
    return BOX


async def send(
    client: httpx2.AsyncClient, headers: Headers, *operations: Line, to: str = BOX
) -> httpx2.Response:
    sent = headers | {"Content-Type": "application/x-ndjson"}
    return await client.post(f"{to}/batch", headers=sent, content=lines(*operations))


async def files(client: httpx2.AsyncClient, headers: Headers, of: str = BOX) -> dict[str, str]:
    """The digests of all files by path; the totals must agree with them."""
    listed = (await client.get(f"{of}/tree?recursive=true", headers=headers)).json()
    fetched = (await client.get(of, headers=headers)).json()
    assert fetched["totalFiles"] == len(listed)
    assert fetched["size"] == sum(file["size"] for file in listed)
    return {file["path"]: file["sha256"] for file in listed}


def updated(path: str, action: str, content: bytes) -> Line:
    """What an event says of a file."""
    return {
        "path": path,
        "action": action,
        "sha256": digest(content),
        "xet_hash": xet_hash(content),
        "size": len(content),
    }


@pytest.mark.parametrize("kind", ["buckets", "containers"])
async def test_a_batch_puts_replaces_and_deletes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    of = f"/api/{kind}/ada/box"
    await client.post(of, headers=ada, json={})
    first = await send(client, ada, add("a", b"one"), add("b/c", b"two"), add("d", b"four"), to=of)

    second = await send(
        client, ada, add("a", b"three"), delete("b/c"), delete("none"), add("d", b"four"), to=of
    )

    assert (first.status_code, first.json()) == (
        200,
        {"success": True, "processed": 3, "succeeded": 3, "failed": []},
    )
    assert second.json() == {"success": True, "processed": 4, "succeeded": 4, "failed": []}
    assert await files(client, ada, of) == {"a": digest(b"three"), "d": digest(b"four")}
    events = await published_events(database, RepoFilesUpdated)
    assert [event["updated_files"] for event in events][1:] == [
        [
            updated("a", "add", b"three"),
            updated("b/c", "delete", b"two"),
        ]
    ]


async def test_what_came_along_with_a_file_is_kept(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await send(
        client,
        ada,
        add("a.txt", mtime=1_795_000_000_123, contentType="text/x-own"),
        add("b.txt", contentType=None),
    )

    [first, second] = (await client.get(f"{box}/tree")).json()

    assert (first["mtime"], first["contentType"]) == ("2026-11-18T11:06:40.123Z", "text/x-own")
    assert (second["mtime"], second["contentType"]) == (second["uploadedAt"], "text/plain")


async def test_a_file_may_have_the_content_of_another_one_in_the_bucket(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await send(client, ada, add("a", b"one"))
    one = digest(b"one")

    response = await send(
        client,
        ada,
        {"type": "addFile", "path": "b", "sha256": one},
        {"type": "addFile", "path": "c", "xetHash": xet_hash(b"one"), "mtime": 1},
        # It may even be the last file that has it.
        delete("a"),
    )

    assert response.status_code == 200
    assert await files(client, ada) == {"b": one, "c": one}


async def test_a_file_is_copied_from_where_the_caller_may_read(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    bob = await sign_in(database, "bob")
    for path, private in (("open", False), ("secret", True)):
        await client.post(f"/api/containers/bob/{path}", headers=bob, json={"private": private})
        await client.put(f"/api/containers/bob/{path}/files/x", headers=bob, content=path.encode())

    taken = await send(client, ada, copy("a", xet_hash(b"open"), "bob/open", "container"))
    partly = await send(
        client,
        ada,
        copy("b", xet_hash(b"secret"), "bob/secret", "container"),
        copy("c", xet_hash(b"secret"), "bob/open", "container"),
        copy("d", digest(b"open"), "bob/open", "container"),
    )

    assert taken.status_code == 200
    assert (partly.status_code, partly.json()) == (
        200,
        {
            "success": False,
            "processed": 3,
            "succeeded": 1,
            "failed": [
                {"path": "b", "error": "container bob/secret: Repository not found"},
                {
                    "path": "c",
                    "error": f"container bob/open has no content {xet_hash(b'secret')} now.",
                },
            ],
        },
    )
    assert await files(client, ada) == {"a": digest(b"open"), "d": digest(b"open")}
    assert (await client.get(f"{box}/files/a")).content == b"open"


async def a_model_with_a_large_file(
    client: httpx2.AsyncClient, database: Database, owner: Headers
) -> str:
    """Create the model `engine`; return the digest of a content that it has."""
    body = {"name": "engine", "type": "model"}
    repo = (await client.post("/api/repos/create", headers=owner, json=body)).json()
    blob = Blob(sha256=digest(b"large"), size=5)
    async with database.transaction() as conn:
        await add_blobs(conn, [blob])
        await blobs.link(conn, repo["id"], [blob])
    return blob.sha256


async def test_a_large_file_is_copied_from_a_repository_with_git(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    sha256 = await a_model_with_a_large_file(client, database, ada)

    response = await send(client, ada, copy("a", sha256, "ada/engine", "model"))

    assert response.status_code == 200
    assert await files(client, ada) == {"a": sha256}


async def test_nothing_is_copied_past_a_gate(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    bob = await sign_in(database, "bob")
    sha256 = await a_model_with_a_large_file(client, database, bob)
    settings = {"gated": "manual"}
    await client.put("/api/models/bob/engine/settings", headers=bob, json=settings)

    response = await send(client, ada, copy("a", sha256, "bob/engine", "model"))

    assert response.status_code == 422
    [failure] = response.json()["failed"]
    assert failure["error"].startswith("model bob/engine: Access to model bob/engine is restricted")
    assert await files(client, ada) == {}


NOT_UPLOADED = (
    f"ada/box has no content {'1' * 64}: upload it by Xet first, send it in base64, "
    "or put the file with PUT."
)
FAILURES = {
    "a path that is none": (
        add("../a"),
        "../a",
        "This is no path of a file: none of its parts is '.' or '..'.",
    ),
    "no content": (
        {"type": "addFile", "path": "n", "mtime": 1},
        "n",
        "One of content, sha256 and xetHash is needed.",
    ),
    "a content that was not uploaded": (
        {"type": "addFile", "path": "n", "xetHash": "1" * 64, "mtime": 1, "contentType": "a/b"},
        "n",
        NOT_UPLOADED,
    ),
    "a file where a folder is": (
        add("kept"),
        "kept",
        "A path, or one that it begins with, cannot be a file and a folder at once.",
    ),
    "a file below a file of the same batch": (
        add("new/below"),
        "new/below",
        "A path, or one that it begins with, cannot be a file and a folder at once.",
    ),
}


async def test_an_operation_that_cannot_be_done_leaves_the_others_alone(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    for name, (line, path, error) in FAILURES.items():
        await send(client, ada, add("folder/a", b"one"), add("kept/a", b"two"))
        response = await send(client, ada, add("new"), delete("folder/a"), add("folder/b"), line)

        assert (response.status_code, response.json()) == (
            200,
            {
                "success": False,
                "processed": 4,
                "succeeded": 3,
                "failed": [{"path": path, "error": error}],
            },
        ), name
        # Events tell of what was done, and totals count it.
        assert list(await files(client, ada)) == ["folder/b", "kept/a", "new"], name


async def test_a_path_that_is_named_twice_fails_as_a_whole(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    response = await send(client, ada, add("a", b"one"), add("b"), add("a", b"two"))

    assert response.json() == {
        "success": False,
        "processed": 3,
        "succeeded": 1,
        "failed": [{"path": "a", "error": "A batch names each path once."}],
    }
    assert list(await files(client, ada)) == ["b"]


async def test_a_batch_of_which_nothing_can_be_done_is_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await send(client, ada, add("kept/a", b"two"))
    # A path, a content, and what shows only when the others are looked at.
    broken = [FAILURES[name][0] for name in ("a path that is none", "no content")]
    before = (await client.get(box)).json()["updatedAt"]

    response = await send(client, ada, *broken, add("kept"))

    assert (response.status_code, response.json()) == (
        422,
        {
            "error": "No operation of the batch can be done, so nothing was changed.",
            "success": False,
            "processed": 3,
            "succeeded": 0,
            "failed": [
                {"path": path, "error": error}
                for _, path, error in (
                    FAILURES["a path that is none"],
                    FAILURES["a file where a folder is"],
                    FAILURES["no content"],
                )
            ],
        },
    )
    assert await files(client, ada) == {"kept/a": digest(b"two")}
    assert (await client.get(box)).json()["updatedAt"] == before
    assert len(await published_events(database, RepoFilesUpdated)) == 1


async def test_a_folder_that_goes_makes_room_for_a_file(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await send(client, ada, add("a/b"))

    response = await send(client, ada, add("a"), delete("a/b"))

    assert response.status_code == 200
    assert list(await files(client, ada)) == ["a"]


BROKEN = {
    b'{"type": "addFile", "path": "a"': "Line 1 of the batch: The body must be valid JSON.",
    b'{"type":"deleteFile","path":"a"}\n\n[]': "Line 3 of the batch: The body must be an object.",
    b'{"path": "a"}': "Line 1 of the batch: type must be addFile, copyFile or deleteFile.",
    b'{"type": "moveFile", "path": "a"}': (
        "Line 1 of the batch: type must be addFile, copyFile or deleteFile."
    ),
    b'{"type": "addFile", "content": ""}': "Line 1 of the batch: path is required.",
    b'{"type": "addFile", "path": "a", "sha256": "x", "mtime": -1}': (
        "Line 1 of the batch: sha256 must match ^[0-9a-f]{64}$. mtime must be at least 0."
    ),
    b'{"type": "addFile", "path": "a", "content": "?"}': (
        "Line 1 of the batch: content must be base64."
    ),
    b'{"type": "addFile", "path": "a", "content": "", "contentType": "x"}': (
        "Line 1 of the batch: Content-Type must be a media type such as text/plain."
    ),
    b'{"type": "deleteFile", "path": "a\xff"}': "Line 1 of the batch: The body must be valid JSON.",
    b"": "A batch must have 1 to 1000 operations, one on each line.",
    b"\n \n": "A batch must have 1 to 1000 operations, one on each line.",
}


async def test_a_batch_that_cannot_be_read_is_refused_with_the_line(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    for content, sentence in BROKEN.items():
        response = await client.post(f"{box}/batch", headers=ada, content=content)

        assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_batch_has_limits(client: httpx2.AsyncClient, ada: Headers, box: str) -> None:
    most = await send(client, ada, *(add(f"f/{n}", b"") for n in range(1000)))
    more = await send(client, ada, *(delete(f"f/{n}") for n in range(1001)))
    large = await client.post(f"{box}/batch", headers=ada, content=b" " * ((8 << 20) + 1))

    assert most.status_code == 200
    assert (more.status_code, more.json()) == (
        400,
        {"error": "A batch must have 1 to 1000 operations, one on each line."},
    )
    assert (large.status_code, large.json()) == (
        413,
        {"error": "A batch must have at most 8388608 bytes; larger files go by PUT, one by one."},
    )
    assert len(await files(client, ada)) == 1000


async def test_a_long_list_of_news_is_told_in_several_facts(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    box: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "FILES_PER_EVENT", 2)

    await send(client, ada, *(add(name) for name in "abcde"))

    events = await published_events(database, RepoFilesUpdated)
    assert [[file["path"] for file in event["updated_files"]] for event in events] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
    ]


async def test_only_who_may_write_sends_a_batch(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    bob = await sign_in(database, "bob")
    reading = await sign_in(database, "ada", scopes=["read-repos"])

    answers = [await send(client, headers, add("a")) for headers in ({}, bob, reading)]

    assert [answer.status_code for answer in answers] == [401, 403, 403]
    assert await files(client, ada) == {}


async def test_a_token_that_is_revoked_while_a_batch_arrives_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield lines(add("a"))
        await revoke(database, ada)
        yield lines(add("b"))

    sent = ada | {"Content-Type": "application/x-ndjson"}
    response = await client.post(f"{box}/batch", headers=sent, content=content())

    assert response.status_code == 401
    assert await files(client, {}) == {}
