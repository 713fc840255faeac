"""Files of buckets and containers: put, get, list, delete."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.types import Message

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.app import with_edge
from hublet.core.database import Database
from hublet.core.database.sqlite import SqliteDatabase
from hublet.core.hub import Hub
from hublet.core.paging import write_cursor
from hublet.events import RepoFilesUpdated
from hublet.storage.xet_hashes import file_hash, to_text
from hublet.tokens import service as tokens
from hublet.tokens import store as token_store
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from storage.xet_content import nodes

BOX = "/api/buckets/ada/box"
KINDS = ["buckets", "containers"]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
async def box(client: httpx2.AsyncClient, ada: Headers) -> str:
    """The address of an empty bucket that everybody may read."""
    created = await client.post(BOX, headers=ada, json={})
    assert created.status_code == 200
    return BOX


async def fill(client: httpx2.AsyncClient, headers: Headers, *paths: str) -> None:
    for path in paths:
        response = await client.put(f"{BOX}/files/{path}", headers=headers, content=path.encode())
        assert response.status_code == 200, response.text


async def totals(client: httpx2.AsyncClient) -> tuple[int, int]:
    """How many files the bucket says that it has, and how large they are together."""
    fetched = (await client.get(BOX)).json()
    return fetched["totalFiles"], fetched["size"]


async def updated_files(database: Database) -> list[list[tuple[str, str]]]:
    """What the events tell of: an action and a path for each file, a list for each event."""
    return [
        [(file["action"], file["path"]) for file in event["updated_files"]]
        for event in await published_events(database, RepoFilesUpdated)
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_comes_back_as_it_was_put(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await client.post(f"/api/{kind}/ada/box", headers=ada, json={})
    content = bytes(range(256)) * 10_000
    headers = {
        **ada,
        "Content-Type": "application/x-thing",
        "X-File-Modified-At": "2026-11-15T01:44:56.123Z",
    }

    stored = await client.put(
        f"/api/{kind}/ada/box/files/a/b.bin", headers=headers, content=content
    )
    got = await client.get(f"/api/{kind}/ada/box/files/a/b.bin")
    resolved = await client.get(f"/{kind}/ada/box/resolve/a%2Fb.bin")
    fetched = await client.get(f"/api/{kind}/ada/box")

    assert stored.json() == {
        "type": "file",
        "path": "a/b.bin",
        "size": 2_560_000,
        "sha256": digest(content),
        "xetHash": stored.json()["xetHash"],
        "mtime": "2026-11-15T01:44:56.123Z",
        "uploadedAt": stored.json()["uploadedAt"],
        "contentType": "application/x-thing",
    }
    for answer in (got, resolved):
        assert (answer.status_code, answer.content) == (200, content)
        assert answer.headers["content-type"] == "application/x-thing"
        assert answer.headers["etag"] == f'"{digest(content)}"'
        assert answer.headers["content-length"] == "2560000"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert (fetched.json()["totalFiles"], fetched.json()["size"]) == (1, 2_560_000)
    [event] = await published_events(database, RepoFilesUpdated)
    assert (event["repo"]["name"], event["repo"]["type"]) == ("ada/box", kind.removesuffix("s"))
    assert event["updated_files"] == [
        {
            "path": "a/b.bin",
            "action": "add",
            "sha256": digest(content),
            "xet_hash": stored.json()["xetHash"],
            "size": 2_560_000,
        }
    ]


async def test_head_tells_the_size_without_the_content(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a")

    response = await client.head("/buckets/ada/box/resolve/a")

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "1"
    assert response.headers["etag"] == f'"{digest(b"a")}"'


async def test_a_part_of_a_file_and_a_file_that_is_known(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, "abc")
    url = f"{box}/files/abc"

    part = await client.get(url, headers={"Range": "bytes=1-"})
    behind = await client.get(url, headers={"Range": "bytes=3-"})
    known = await client.get(url, headers={"If-None-Match": f'"{digest(b"abc")}"'})

    assert (part.status_code, part.content) == (206, b"bc")
    assert part.headers["content-range"] == "bytes 1-2/3"
    assert (behind.status_code, behind.headers["content-range"]) == (416, "bytes */3")
    assert (known.status_code, known.content) == (304, b"")


async def test_an_empty_file_is_a_file(client: httpx2.AsyncClient, ada: Headers, box: str) -> None:
    stored = await client.put(f"{box}/files/.keep", headers=ada, content=b"")
    got = await client.get(f"{box}/files/.keep")

    assert stored.json()["size"] == 0
    assert (got.status_code, got.content, got.headers["content-length"]) == (200, b"", "0")
    assert await totals(client) == (1, 0)


async def test_without_a_content_type_the_name_tells_it(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    for path, media_type in {
        "a.txt": "text/plain",
        "a.json": "application/json",
        # A compressed text is none, and some endings say nothing.
        "a.txt.gz": "application/octet-stream",
        "a.nothing": "application/octet-stream",
    }.items():
        stored = await client.put(f"{box}/files/{path}", headers=ada, content=b"{}")
        got = await client.get(f"{box}/files/{path}")

        assert stored.json()["contentType"] == media_type
        assert got.headers["content-type"] == media_type


async def test_a_file_that_is_put_again_is_replaced(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    for content in (b"one", b"three", b"three"):
        await client.put(f"{box}/files/a", headers=ada, content=content)

    fetched = (await client.get(box)).json()
    assert (await client.get(f"{box}/files/a")).content == b"three"
    assert (fetched["totalFiles"], fetched["size"]) == (1, 5)
    assert fetched["updatedAt"] > fetched["createdAt"]
    # The same content once more is no news.
    assert await updated_files(database) == [[("add", "a")], [("add", "a")]]


async def test_a_deleted_file_is_gone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a", "bb")

    deleted = await client.delete(f"{box}/files/a", headers=ada)
    again = await client.delete(f"{box}/files/a", headers=ada)
    got = await client.get(f"{box}/files/a")

    assert (deleted.status_code, deleted.json()) == (200, {})
    for answer in (again, got):
        assert (answer.status_code, answer.json()) == (
            404,
            {"error": "There is no file a in ada/box."},
        )
        assert answer.headers["x-error-code"] == "EntryNotFound"
    assert await totals(client) == (1, 2)
    assert (await updated_files(database))[2:] == [[("delete", "a")]]


async def test_a_path_that_is_none_is_refused(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    for path in ("%2e%2e/a", "a//b", ".git/config", "a%5Cb", "a%09b", "x/"):
        response = await client.put(f"{box}/files/{path}", headers=ada, content=b"x")

        assert response.status_code == 400
        assert response.json()["error"].startswith("This is no path of a file: ")
    assert await totals(client) == (0, 0)


async def test_nothing_is_a_file_and_a_folder(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    # Beginning with the same letters is not lying in the same folder.
    await fill(client, ada, "a", "b/c", "a-", "a0", "b-", "b0")

    for path in ("a/b", "a/b/c", "b"):
        response = await client.put(f"{box}/files/{path}", headers=ada, content=b"x")
        sentence = "a path, or one that it begins with, cannot be a file and a folder at once."
        assert (response.status_code, response.json()) == (409, {"error": f"{path}: {sentence}"})
    assert (await totals(client))[0] == 6


async def test_what_will_be_refused_is_refused_before_it_is_sent(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a")
    bob = await sign_in(database, "bob")

    async def content() -> AsyncIterator[bytes]:
        pytest.fail("The body was read.")
        yield b""

    statuses = [
        (await client.put(f"{box}/files/{path}", headers=headers, content=content())).status_code
        for path, headers in (
            ("a", ada | {"If-None-Match": "*"}),
            (".git/a", ada),
            ("a", bob),
        )
    ]

    assert statuses == [412, 400, 403]


async def test_rights_that_end_while_a_file_is_sent_are_gone(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(database, "engines", members={"bob": Role.write})
    user, bob = await a_user(database, "bob"), await sign_in(database, "bob")
    await client.post("/api/buckets/engines/box", headers=bob, json={})

    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        async with database.transaction() as conn:
            await conn.execute("UPDATE repos SET creator_id = 'x'")
            await organizations.set_member(conn, OPERATOR, organization, user, Role.read)
        yield b"two"

    response = await client.put("/api/buckets/engines/box/files/a", headers=bob, content=content())

    assert response.status_code == 403
    assert (await client.get("/api/buckets/engines/box/tree")).json() == []


async def test_a_token_that_is_cut_off_while_a_file_is_sent_adds_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(database, "engines", members={"bob": Role.write})
    bob = await sign_in(database, "bob")
    await client.post("/api/buckets/engines/box", headers=bob, json={})

    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        async with database.transaction() as conn:
            token = await tokens.find_by_value(conn, bob["Authorization"].removeprefix("Bearer "))
            assert token is not None
            await token_store.cut_off(conn, organization.id, token.id)
        yield b"two"

    response = await client.put("/api/buckets/engines/box/files/a", headers=bob, content=content())

    assert response.status_code == 401
    assert (await client.get("/api/buckets/engines/box/tree")).json() == []


async def test_a_bucket_that_goes_while_a_file_is_sent_is_gone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        await client.delete(box, headers=ada)
        yield b"two"

    response = await client.put(f"{box}/files/a", headers=ada, content=content())

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")
    assert await updated_files(database) == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_change_may_depend_on_what_is_there(
    client: httpx2.AsyncClient, ada: Headers, box: str, method: str
) -> None:
    await fill(client, ada, "a")
    this, other = f'"{digest(b"a")}"', f'"{digest(b"x")}"'
    failing = [
        {"If-None-Match": "*"},
        {"If-None-Match": this},
        {"If-Match": other},
        {"If-Match": this, "If-None-Match": f"{other}, W/{this}"},
    ]
    holding = [{"If-None-Match": other}, {"If-Match": f"{other}, {this}"}, {"If-Match": "*"}]

    for condition in failing:
        response = await client.request(method, f"{box}/files/a", headers=ada | condition)
        assert (response.status_code, response.json()) == (
            412,
            {"error": "If-Match or If-None-Match does not hold for a as it is now."},
        )
    assert (await client.get(f"{box}/files/a")).content == b"a"
    for condition in holding:
        await fill(client, ada, "a")
        response = await client.request(method, f"{box}/files/a", headers=ada | condition)
        assert response.status_code == 200


async def test_a_file_that_must_be_there_is_not_created(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    missing = await client.put(f"{box}/files/a", headers=ada | {"If-Match": "*"}, content=b"x")
    new = await client.put(f"{box}/files/a", headers=ada | {"If-None-Match": "*"}, content=b"x")

    assert (missing.status_code, new.status_code) == (412, 200)


async def test_of_two_who_create_one_file_only_one_succeeds(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    headers = ada | {"If-None-Match": "*"}

    answers = await asyncio.gather(
        *(client.put(f"{box}/files/a", headers=headers, content=b"x" * n) for n in range(8))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    [size] = [answer.json()["size"] for answer in answers if answer.status_code == 200]
    assert await totals(client) == (1, size)


async def test_writes_at_the_same_moment_leave_the_totals_right(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    requests = [
        client.put(f"{box}/files/{name}", headers=ada, content=b"x" * size)
        for size in range(1, 8)
        for name in ("a", "b", f"own-{size}")
    ]
    requests += [client.delete(f"{box}/files/b", headers=ada) for _ in range(4)]

    answers = await asyncio.gather(*requests)

    assert {answer.status_code for answer in answers} <= {200, 404}
    files = (await client.get(f"{box}/tree")).json()
    assert await totals(client) == (len(files), sum(file["size"] for file in files))
    state: dict[str, str] = {}
    for [(action, path)] in await updated_files(database):
        state[path] = action
    assert {path for path, action in state.items() if action == "add"} == {
        file["path"] for file in files
    }


HEADS = [
    (
        {"X-Content-Sha256": digest(b"other")},
        "X-Content-Sha256 is not the digest of the body that arrived; send it again.",
    ),
    (
        {"Digest": "md5=x, SHA-256=" + base64.b64encode(bytes(32)).decode()},
        "Digest is not the digest of the body that arrived; send it again.",
    ),
    ({"X-Content-Sha256": "abc"}, "x-content-sha256 must match ^[0-9A-Fa-f]{64}$."),
    ({"Digest": "sha-256=abc"}, "Digest must be written sha-256= and 32 bytes in base64."),
    (
        {"X-File-Modified-At": "yesterday"},
        "x-file-modified-at must be a timestamp such as 2026-11-15T01:44:56Z.",
    ),
    ({"Content-Type": "picture"}, "Content-Type must be a media type such as text/plain."),
]


async def test_a_head_that_does_not_fit_is_refused(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    for headers, sentence in HEADS:
        response = await client.put(f"{box}/files/a", headers=ada | headers, content=b"content")

        assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert await totals(client) == (0, 0)


async def test_a_digest_that_fits_is_taken(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    octets = hashlib.sha256(b"content").digest()
    encoded = base64.b64encode(octets).decode()
    headers = {"X-Content-Sha256": octets.hex().upper(), "Digest": f"sha-256=:{encoded}:"}

    response = await client.put(f"{box}/files/a", headers=ada | headers, content=b"content")

    assert response.status_code == 200


async def test_a_file_has_a_largest_size(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    settings = database.hub.settings
    small = replace(settings, limits=replace(settings.limits, file_bytes=2_000_000))
    database.hub = Hub(settings=small, keys=database.hub.keys)

    async def content(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 1000):
            yield bytes(1000)

    fits = await client.put(f"{box}/files/a", headers=ada, content=content(2_000_000))
    too_large = await client.put(f"{box}/files/b", headers=ada, content=content(2_001_000))

    assert fits.status_code == 200
    assert (too_large.status_code, too_large.json()) == (
        413,
        {"error": "A file must have at most 2000000 bytes."},
    )
    # Nothing of it stays on the disk.
    assert list((settings.database.data_dir / "blobs" / "incoming").iterdir()) == []


async def test_a_body_that_breaks_off_leaves_nothing(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    pieces: list[Message] = [
        {"type": "http.request", "body": b"x" * 10, "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    path = f"{box}/files/a"
    scope = {
        "type": "http",
        "method": "PUT",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", ada["Authorization"].encode())],
    }
    await with_edge(app)(scope, receive, send)

    assert sent[0]["status"] == 400
    assert await totals(client) == (0, 0)
    blobs = database.hub.settings.database.data_dir / "blobs"
    assert list((blobs / "incoming").iterdir()) == []


async def test_the_token_decides_who_reads_and_writes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.post(BOX, headers=ada, json={"private": True})
    tokens = {
        "a token that reads": await sign_in(database, "ada", role=TokenRole.read),
        "a scope that reads": await sign_in(database, "ada", scopes=["read-repos"]),
        "a scope that writes": await sign_in(database, "ada", scopes=["write-repos"]),
        "a scope for something else": await sign_in(database, "ada", scopes=["webhooks"]),
    }

    statuses = {}
    for name, headers in tokens.items():
        await fill(client, ada, "a")
        answers = [
            await client.get(f"{BOX}/files/a", headers=headers),
            await client.put(f"{BOX}/files/b", headers=headers, content=b"x"),
            await client.delete(f"{BOX}/files/a", headers=headers),
        ]
        statuses[name] = [answer.status_code for answer in answers]

    assert statuses == {
        "a token that reads": [200, 403, 403],
        "a scope that reads": [200, 403, 403],
        "a scope that writes": [200, 200, 200],
        "a scope for something else": [404, 404, 404],
    }


async def test_strangers_read_a_public_bucket_and_write_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a")
    bob = await sign_in(database, "bob")

    got = await client.get(f"{box}/files/a")
    put = [
        await client.put(f"{box}/files/a", headers=headers, content=b"x") for headers in ({}, bob)
    ]

    assert got.status_code == 200
    assert [answer.status_code for answer in put] == [401, 403]
    assert put[1].json() == {
        "error": "You cannot do this with ada/box: you have no write access to it."
    }


async def tree(client: httpx2.AsyncClient, path: str = "", **query: Any) -> list[str]:
    """List everything page by page; folders are shown with a slash."""
    url, found = f"{BOX}/tree{path}", []
    response = await client.get(url, params=query)
    while True:
        assert response.status_code == 200, response.text
        found += [e["path"] + "/" * (e["type"] == "directory") for e in response.json()]
        if "next" not in response.links:
            return found
        assert response.json()
        response = await client.get(response.links["next"]["url"])


PATHS = [
    "a",
    "a b",
    "b-1",
    "b/1",
    "b/2/x",
    "b/2/y",
    "b/3",
    "b0",
    "c/d/e",
    "é\u200d/x",
    "\U0010ffff",
]


NEAREST = {
    # At the top.
    "": ["a", "a b", "b-1", "b/", "b0", "c/", "é\u200d/", "\U0010ffff"],
    # In a folder; a folder without its slash is only what paths begin with.
    "/b%2F": ["b/1", "b/2/", "b/3"],
    "/b": ["b-1", "b/1", "b/2/", "b/3", "b0"],
    "/b/2": ["b/2/x", "b/2/y"],
    "/b/2/": ["b/2/x", "b/2/y"],
    # A file, a folder that holds a folder, and nothing.
    "/a": ["a", "a b"],
    "/c": ["c/d/"],
    "/nothing": [],
}
ALL_FILES = {
    "": PATHS,
    "/b%2F": ["b/1", "b/2/x", "b/2/y", "b/3"],
    "/b": PATHS[2:8],
    "/b/2": ["b/2/x", "b/2/y"],
    "/a": ["a", "a b"],
    "/nothing": [],
}


async def test_a_listing_shows_the_nearest_files_and_folders_on_pages_of_any_size(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, *PATHS)

    for limit in (1, 2, 1000):
        listed = {p: await tree(client, p, limit=limit, recursive="false") for p in NEAREST}
        assert listed == NEAREST


async def test_a_recursive_listing_shows_files_only_on_pages_of_any_size(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, *PATHS)

    for limit in (3, 1000):
        listed = {p: await tree(client, p, limit=limit, recursive="true") for p in ALL_FILES}
        assert listed == ALL_FILES
    # As the public client expects it, which leaves the word out unless it is told.
    assert await tree(client) == PATHS
    assert await tree(client, "/b") == ALL_FILES["/b"]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_a_listing_does_not_read_what_lies_in_a_folder(
    client: httpx2.AsyncClient, database: SqliteDatabase, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a/0", "b")
    async with database.transaction() as conn:
        row = await conn.fetch_one("SELECT repo_id, sha256 FROM repo_files WHERE path = 'b'")
        assert row is not None
        await conn.execute_many(
            "INSERT INTO repo_files (repo_id, path, sha256, size, modified_at, uploaded_at) "
            "VALUES ($1, $2, $3, 1, 0, 0)",
            [(row["repo_id"], f"a/{n:05}", row["sha256"]) for n in range(5000)],
        )
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 100

    # A step of SQLite's own machine; reading a row takes several.
    database._raw_reader.set_progress_handler(count, 100)  # noqa: SLF001 - there is no other way
    assert await tree(client, recursive="false") == ["a/", "b"]
    assert steps < 5000


async def test_a_listing_tells_what_is_known_of_each(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a.txt", "b/c")

    [file, folder] = (await client.get(f"{box}/tree?recursive=false")).json()
    [_, in_folder] = (await client.get(f"{box}/tree")).json()

    assert file == {
        "type": "file",
        "path": "a.txt",
        "size": 5,
        "sha256": digest(b"a.txt"),
        "xetHash": to_text(file_hash(nodes([b"a.txt"]))),
        "mtime": file["uploadedAt"],
        "uploadedAt": file["uploadedAt"],
        "contentType": "text/plain",
    }
    assert folder == {"type": "directory", "path": "b", "uploadedAt": in_folder["uploadedAt"]}


async def test_a_listing_refuses_what_it_does_not_know(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    nul = write_cursor("a%00")
    queries = ["limit=0", "limit=1001", "cursor=x", f"cursor={nul}", "recursive=perhaps"]

    statuses = [(await client.get(f"{box}/tree?{query}")).status_code for query in queries]

    assert statuses == [400] * 5


async def test_paths_info_tells_of_files_only(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    await fill(client, ada, "a", "b/c")

    response = await client.post(f"{box}/paths-info", json={"paths": ["b/c", "b", "a", "x", "a"]})

    assert [file["path"] for file in response.json()] == ["a", "b/c"]
    assert response.json()[0]["sha256"] == digest(b"a")


async def test_paths_info_takes_a_thousand_paths(
    client: httpx2.AsyncClient, ada: Headers, box: str
) -> None:
    most = await client.post(f"{box}/paths-info", json={"paths": ["x"] * 1000})
    more = await client.post(f"{box}/paths-info", json={"paths": ["x"] * 1001})

    assert (most.status_code, most.json()) == (200, [])
    assert (more.status_code, more.json()) == (
        400,
        {"error": "paths must have at most 1000 items."},
    )
