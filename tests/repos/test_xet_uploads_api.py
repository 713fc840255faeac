"""Xorbs and shards: what is verified, kept and refused, and whose it is then."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import msgspec
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store as blobs
from hublet.repos import scrub_store, scrubber
from hublet.repos import store as repos_store
from hublet.repos.xet import store, uploads
from hublet.repos.xet.cas import Cas, UploadSlots
from hublet.storage import shard_verification
from hublet.storage import store as storage
from hublet.storage.contents import pieces
from hublet.storage.object_store import open_store, xorb_key
from hublet.storage.shards import LARGEST_SHARD, Segment
from hublet.storage.workers import processes
from hublet.storage.xet_hashes import to_text
from people import Headers, a_user, sign_in
from repos.content import sha256
from repos.limits import set_limit
from repos.xet import (
    CHUNKS,
    CONTENT,
    FILE,
    XORB,
    XORB_HASH,
    XORB_NAME,
    CasClient,
    cas_of,
    object_name,
    shard_of,
    whole,
    xet_token,
)
from repositories import a_repo
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

EMPTY_FILE = "0" * 64


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def cas(client: httpx2.AsyncClient, ada: Headers, repo_id: str) -> CasClient:
    return await cas_of(client, ada)


def left_behind(database: Database) -> list[str]:
    """Names of all objects and spools."""
    folder = database.hub.settings.database.data_dir
    found = [*folder.glob("xorbs/**/*"), *folder.glob("blobs/**/*")]
    return sorted(path.name for path in found if path.is_file())


async def read(database: Database, digest: str) -> bytes:
    """Return the content of a blob as all parts of the hub read it."""
    async with database.read() as conn:
        content = (await storage.find_contents(conn, [digest]))[digest]
    return b"".join(pieces(Cas(database).store, content, 0, content.size))


async def test_a_file_is_content_of_the_repository_by_its_sha256(
    client: httpx2.AsyncClient, database: Database, ada: Headers, cas: CasClient, repo_id: str
) -> None:
    assert (await cas.upload_xorb()).json() == {"was_inserted": True}
    assert (await cas.register(shard_of())).json() == {"result": 1}

    assert await read(database, sha256(CONTENT)) == CONTENT
    async with database.read() as conn:
        [file] = (await store.find_files(conn, repo_id, [FILE])).values()
        assert file.sha256 == sha256(CONTENT)
        assert list(await blobs.find_in_repo(conn, repo_id, [sha256(CONTENT)]))
    line = {"path": "model.bin", "algo": "sha256", "oid": sha256(CONTENT), "size": len(CONTENT)}
    commit = [{"key": "header", "value": {"summary": "Add."}}, {"key": "lfsFile", "value": line}]
    committed = await client.post(
        "/api/models/ada/engine/commit/main",
        headers=ada | {"content-type": "application/x-ndjson"},
        content=b"\n".join(map(msgspec.json.encode, commit)),
    )
    assert committed.status_code == 200, committed.text


async def test_the_same_again_is_no_news(cas: CasClient) -> None:
    await cas.upload()
    assert (await cas.upload_xorb()).json() == {"was_inserted": False}
    assert (await cas.register(shard_of())).json() == {"result": 0}


async def test_what_another_repository_has_is_new_to_this_one(
    client: httpx2.AsyncClient, ada: Headers, cas: CasClient
) -> None:
    await cas.upload()
    await a_repo(client, ada, "ada/other")
    other = await cas_of(client, ada, repo="models/ada/other")
    assert (
        await other.get(f"/v1/chunks/default/{to_text(nodes(CHUNKS)[0].hash)}")
    ).status_code == 404
    assert (await other.get(f"/v1/reconstructions/{FILE}")).status_code == 404
    refused = await other.register(shard_of())
    assert refused.json() == {"error": f"The xorb {XORB_NAME} was not uploaded here."}
    assert (await other.upload_xorb()).json() == {"was_inserted": True}
    assert (await other.register(shard_of())).json() == {"result": 1}
    assert await other.download(FILE) == CONTENT

    return nodes(CHUNKS)[0].hash


async def test_a_stream_tells_of_the_verification_and_ends_with_the_result(
    cas: CasClient, database: Database, repo_id: str
) -> None:
    await cas.upload_xorb()
    response = await cas.register(shard_of(), version=2)
    assert response.headers["Content-Type"] == "application/x-ndjson"
    assert frames(response) == [
        {"type": "validating", "verified": 0, "total": 1},
        {"type": "committing", "stage": "syncing"},
        {"type": "result"},
    ]
    assert await cas.download(FILE) == CONTENT


def frames(response: httpx2.Response) -> list[dict[str, object]]:
    assert response.content.endswith(b"\n")
    return [msgspec.json.decode(line) for line in response.content.splitlines()]


async def test_a_busy_stream_repeats_its_frames(
    cas: CasClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cas.upload_xorb()
    monkeypatch.setattr(uploads, "FRAME_SECONDS", 0.0)
    listed = frames(await cas.register(shard_of(), version=2))
    assert len(listed) > 3
    assert {str(each["type"]) for each in listed} >= {"validating", "result"}


async def test_a_stream_ends_with_what_is_wrong(cas: CasClient, database: Database) -> None:
    await cas.upload_xorb()
    response = await cas.register(shard_of(digest=sha256(b"other")), version=2)
    sentence = f"The file {FILE} has the SHA-256 {sha256(CONTENT)}, not {sha256(b'other')}."
    assert response.status_code == 200
    assert frames(response)[-1] == {"type": "error", "message": sentence, "retryable": False}
    async with database.read() as conn:
        assert not await conn.fetch_all("SELECT 1 FROM layouts")


async def test_a_shard_that_is_none_is_refused_before_the_stream(cas: CasClient) -> None:
    for version in (1, 2):
        response = await cas.register(b"not a shard", version=version)
        assert response.status_code == 400
        assert response.json() == {"error": "The shard is shorter than its header."}


async def test_a_file_without_sha256_gets_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/store", type="bucket")
    cas = await cas_of(client, ada, repo="buckets/ada/store")
    await cas.upload_xorb()
    shard = make_shard([shard_file(CHUNKS, [whole()])], [shard_xorb(CHUNKS)])
    assert (await cas.register(shard)).json() == {"result": 1}
    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_an_empty_file_is_a_file(cas: CasClient, database: Database, repo_id: str) -> None:
    shard = make_shard([shard_file([], [], sha256=sha256(b""))], [])
    assert (await cas.register(shard)).json() == {"result": 1}
    async with database.read() as conn:
        [file] = (await store.find_files(conn, repo_id, [EMPTY_FILE])).values()
        assert file.sha256 == sha256(b"")
    assert await cas.download(EMPTY_FILE) == b""
    assert await read(database, sha256(b"")) == b""


async def test_one_shard_registers_many_files_of_many_xorbs(
    cas: CasClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_BATCH_FILES", 3)
    first, second = [b"%d first" % at for at in range(9)], [b"%d second" % at for at in range(9)]
    one, two = make_xorb(first, 1)[0], make_xorb(second)[0]
    await cas.upload_xorb(second)
    await cas.post(f"/v1/xorbs/default/{to_text(one)}", make_xorb(first, 1)[1])
    files = [
        [Segment(one, 7, at, at + 1), Segment(two, 8 * at, 0, at), Segment(one, 7, at, at + 1)]
        for at in range(1, 9)
    ]
    contents = [[first[at], *second[:at], first[at]] for at in range(1, 9)]
    shard = make_shard(
        [shard_file(chunks, segments) for chunks, segments in zip(contents, files, strict=True)],
        [shard_xorb(second), shard_xorb(first)],
    )
    assert frames(await cas.register(shard, version=2))[-1] == {"type": "result"}
    for chunks in contents:
        assert await read(database, sha256(b"".join(chunks))) == b"".join(chunks)


async def test_a_xorb_has_chunks(cas: CasClient, database: Database) -> None:
    response = await cas.post(f"/v1/xorbs/default/{XORB_NAME}", b"")
    assert (response.status_code, response.json()) == (
        400,
        {"error": "A xorb has at least one chunk."},
    )
    assert left_behind(database) == []


async def test_a_name_that_is_no_hash_is_refused(cas: CasClient) -> None:
    for name in ("x", XORB_NAME.upper(), XORB_NAME + "0"):
        assert (await cas.post(f"/v1/xorbs/default/{name}", XORB)).status_code == 400
        assert (await cas.get(f"/v1/chunks/default/{name}")).status_code == 400
        assert (await cas.get(f"/v2/reconstructions/{name}")).status_code == 400
    assert (await cas.post(f"/v1/xorbs/other/{XORB_NAME}", XORB)).status_code == 400


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(1 << 20)


@pytest.mark.parametrize(
    ("path", "kind", "largest"),
    [
        (f"/v1/xorbs/default/{XORB_NAME}", "xorb", uploads.LARGEST_XORB_BODY),
        ("/v1/shards", "shard", LARGEST_SHARD),
        ("/v2/shards", "shard", LARGEST_SHARD),
    ],
)
async def test_a_body_that_is_too_large_is_refused(
    cas: CasClient, database: Database, path: str, kind: str, largest: int
) -> None:
    announced = await cas.client.post(
        cas.url + path, content=b"", headers=cas.headers | {"Content-Length": str(largest + 1)}
    )
    streamed = await cas.post(path, _endless())
    for response in (announced, streamed):
        assert response.status_code == 413
        assert response.json() == {"error": f"A {kind} must have at most {largest} bytes."}
    assert left_behind(database) == []


async def test_a_grant_is_never_given(cas: CasClient) -> None:
    await cas.upload()
    response = await cas.post(f"/v1/xorb-grants/default/{XORB_NAME}", b'{"length":1}')
    assert response.status_code == 404


OTHER = (b"other ", b"chunks ", b"of the same xorb")
# More of them: tests/security/test_xet_hostile_inputs.py.
LYING = [
    pytest.param(
        make_shard([], [shard_xorb(OTHER)]),
        f"The xorb {to_text(make_xorb(OTHER)[0])} was not uploaded here.",
        id="a xorb that is not here",
    ),
    pytest.param(
        make_shard([], [shard_xorb(CHUNKS).replace(shard_xorb(CHUNKS)[48:80], b"x" * 32)]),
        f"The shard's chunks of the xorb {XORB_NAME} are not its own.",
        id="other chunks of a xorb",
    ),
    pytest.param(
        make_shard([shard_file(CHUNKS, [whole()], sha256=sha256(b""))], []),
        f"The file {FILE} has the SHA-256 {sha256(CONTENT)}, not {sha256(b'')}.",
        id="another SHA-256",
    ),
]


@pytest.mark.parametrize(("shard", "sentence"), LYING)
async def test_a_shard_that_lies_registers_nothing(
    cas: CasClient, database: Database, shard: bytes, sentence: str
) -> None:
    await cas.upload_xorb()
    response = await cas.register(shard)
    assert (response.status_code, response.json()) == (400, {"error": sentence})
    async with database.read() as conn:
        assert not await conn.fetch_all("SELECT 1 FROM layouts")
    assert left_behind(database) == [object_name()]


async def test_the_sha256_of_a_known_file_is_still_compared(cas: CasClient) -> None:
    await cas.upload()
    response = await cas.register(shard_of(digest=sha256(b"other")))
    assert response.status_code == 400


async def test_a_file_of_a_shard_has_a_limit(
    app: FastAPI, cas: CasClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cas.upload_xorb()
    hub = app.state.cas.database.hub
    limits = replace(hub.settings.limits, file_bytes=len(CONTENT) - 1)
    small = replace(hub, settings=replace(hub.settings, limits=limits))
    monkeypatch.setattr(app.state.cas.database, "hub", small)
    response = await cas.register(shard_of())
    assert (response.status_code, response.json()) == (
        413, {"error": f"A file must have at most {len(CONTENT) - 1} bytes."},
    )  # fmt: skip


async def test_repetitions_of_a_xorb_have_a_limit(
    app: FastAPI, cas: CasClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cas.upload_xorb()
    hub = app.state.cas.database.hub
    limits = replace(hub.settings.limits, file_bytes=len(CONTENT))
    small = replace(hub, settings=replace(hub.settings, limits=limits))
    monkeypatch.setattr(app.state.cas.database, "hub", small)
    shard = make_shard([shard_file(CHUNKS, [whole()])] * 5, [])
    response = await cas.register(shard)
    assert response.json() == {
        "error": f"The files of a shard have at most {4 * len(CONTENT)} bytes together."
    }


def test_a_shard_names_a_bounded_number_of_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shard"
    path.write_bytes(make_shard([shard_file(CHUNKS, [whole()])] * 2, []))
    monkeypatch.setattr(shard_verification, "MOST_CHUNKS_OF_SHARD", 5)
    with pytest.raises(shard_verification.InvalidShard, match="at most 5 chunks"):
        shard_verification.outline(path)
    monkeypatch.setattr(shard_verification, "MOST_CHUNKS_OF_FILE", 2)
    with pytest.raises(shard_verification.InvalidShard, match="at most 2 chunks"):
        shard_verification.outline(path)


def test_a_shard_has_a_bounded_number_of_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shard"
    one, two = shard_file(CHUNKS, [whole()]), shard_file(CHUNKS * 2, [whole(), whole()])
    monkeypatch.setattr(shard_verification, "MOST_FURTHER_SEGMENTS", 1)
    path.write_bytes(make_shard([one] * 5 + [two], []))
    assert len(shard_verification.outline(path).files) == 6
    path.write_bytes(make_shard([two] * 2, []))
    with pytest.raises(shard_verification.InvalidShard, match="at most 1 segments besides"):
        shard_verification.outline(path)


async def test_a_xorb_that_was_collected_in_the_meantime_is_refused(
    app: FastAPI, cas: CasClient, database: Database, repo_id: str
) -> None:
    await cas.upload_xorb()

    async def shard() -> AsyncIterator[bytes]:
        yield shard_of()

    async with database.read() as conn:
        repo = await repos_store.find(conn, repo_id)
    assert repo is not None
    received = await uploads.receive_shard(app.state.cas, repo, shard())
    registration = uploads.ShardRegistration(app.state.cas, repo_id, received)
    files = await registration.verify()
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_xorbs WHERE repo_id = $1", repo_id)
    with pytest.raises(uploads.InvalidShard, match="removed while it was verified"):
        await registration.commit(files)
    received.spool.close()
    async with database.read() as reader:
        assert not await reader.fetch_all("SELECT 1 FROM layouts")


async def test_a_xorb_is_unused_until_a_file_has_a_piece_of_it(
    cas: CasClient, database: Database
) -> None:
    async def unused_since() -> int | None:
        async with database.read() as conn:
            since: int | None = await conn.fetch_value("SELECT unused_since FROM repo_xorbs")
            return since

    await cas.upload_xorb()
    first = await unused_since()
    await cas.upload_xorb()
    second = await unused_since()
    assert (first or 0) < (second or 0)
    await cas.register(shard_of())
    assert await unused_since() is None


async def test_a_file_is_unused_until_a_commit_takes_it(
    cas: CasClient, database: Database, repo_id: str
) -> None:
    await cas.upload()
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT sha256, is_used FROM repo_blobs")
    assert [(row["sha256"], bool(row["is_used"])) for row in rows] == [(sha256(CONTENT), False)]


async def test_a_killed_worker_breaks_one_request_only(cas: CasClient) -> None:
    await cas.upload_xorb()
    call = asyncio.create_task(processes.run(signal.pause))
    while not (running := list(processes._pools[False]._processes or {})):  # noqa: SLF001
        await asyncio.sleep(0.01)
    for process in running:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(Exception, match="interrupted; send it again"):
        await call
    assert await cas.upload() == FILE


async def test_uploads_of_a_user_wait_for_one_another(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, cas: CasClient
) -> None:
    slots = app.state.cas.slots = UploadSlots(most=2, most_of_user=1, patience_seconds=0.05)
    ada_id = (await a_user(database, "ada")).id
    grace = await cas_of(client, await sign_in(database, "grace"))
    async with slots.one(ada_id):
        refused = await cas.upload_xorb()
        assert refused.status_code == 429
        assert refused.json() == {"error": "Too many of your uploads are on the way."}
        assert (await grace.upload_xorb()).status_code == 200
        async with slots.one("another"):
            assert (await grace.upload_xorb()).status_code == 503
    assert (await cas.upload_xorb()).status_code == 200
    assert slots._users == {}  # noqa: SLF001 - nobody is remembered


async def test_stored_xorbs_are_the_hubs_own(cas: CasClient, database: Database) -> None:
    """A footer of the uploader's is not kept; ours is behind the chunks."""
    footer = b"XETBLOB" + b"whatever this is"
    response = await cas.post(f"/v1/xorbs/default/{XORB_NAME}", XORB + footer)
    assert response.status_code == 200
    objects = Cas(database).store
    found = objects.stat(xorb_key(object_name()))
    assert found is not None
    stored = b"".join(objects.pieces(xorb_key(object_name()), 0, found.size))
    assert stored.startswith(XORB)
    assert footer not in stored
    assert XORB_HASH in stored


@pytest.mark.parametrize("scheme", [0, 1])
async def test_a_damaged_xorb_is_healed_by_its_next_upload(
    cas: CasClient, database: Database, scheme: int
) -> None:
    file = await cas.upload()
    path = open_store(database.hub.settings).local_path(xorb_key(object_name()))
    assert path is not None
    data = path.read_bytes()
    path.write_bytes(data[:10] + b"?" + data[11:])
    await scrubber.scrub(database, unchecked_since=clock.now())
    _, again = make_xorb(CHUNKS, scheme)

    response = await cas.post(f"/v1/xorbs/default/{XORB_NAME}", again)

    # The scrubber took it from the repository, because its bytes were wrong.
    assert response.json() == {"was_inserted": True}
    assert await cas.download(file) == CONTENT
    async with database.read() as conn:
        assert await scrub_store.count_damaged(conn) == 0


async def test_who_has_no_room_gets_no_token_and_registers_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, cas: CasClient
) -> None:
    await cas.upload_xorb()
    await set_limit(database, 10)
    refused = await cas.register(shard_of())
    assert refused.status_code == 403
    assert "the limit is 10" in refused.json()["error"]
    await set_limit(database, None)
    assert await cas.upload() == FILE
    await set_limit(database, 10)
    assert (await xet_token(client, ada)).status_code == 200
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_blobs SET is_used = TRUE")
    refused = await xet_token(client, ada)
    assert refused.status_code == 403
    assert "hold 49 bytes" in refused.json()["error"]
