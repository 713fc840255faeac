"""Chunk queries, reconstructions and the data at signed addresses."""

import json
import re
import struct
from datetime import timedelta
from email import message_from_bytes
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos.xet.downloads import DATA_LIFE, QUERY_LIFE
from hublet.storage.object_store import xorb_key
from hublet.storage.shards import Segment, parse
from hublet.storage.xet_hashes import file_hash, keyed_hash, last_number, to_text
from people import Headers
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
)
from repositories import a_repo
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

SECOND = (b"one ", b"more ", b"xorb ", b"of chunks ")
SECOND_HASH, _ = make_xorb(SECOND)
# The first two chunks, then two of the other xorb with one between them that is not there.
MIXED = [*CHUNKS[:2], SECOND[0], SECOND[2], CHUNKS[2]]
MIXED_FILE = to_text(file_hash(nodes(MIXED)))
MIXED_SEGMENTS = [
    Segment(XORB_HASH, 33, 0, 2),
    Segment(SECOND_HASH, 4, 0, 1),
    Segment(SECOND_HASH, 5, 2, 3),
    Segment(XORB_HASH, 16, 2, 3),
]


@pytest.fixture
async def cas(client: httpx2.AsyncClient, ada: Headers) -> CasClient:
    """The CAS of a repository with one file, and with one that has pieces of two xorbs."""
    await a_repo(client, ada, "ada/engine")
    cas = await cas_of(client, ada)
    await cas.upload()
    await cas.upload_xorb(SECOND)
    shard = make_shard([shard_file(MIXED, MIXED_SEGMENTS)], [shard_xorb(SECOND)])
    assert (await cas.register(shard)).status_code == 200
    return cas


async def reconstruction(cas: CasClient, file: str = MIXED_FILE, version: int = 2) -> Any:
    response = await cas.get(f"/v{version}/reconstructions/{file}")
    assert response.status_code == 200, response.text
    return response.json()


async def test_both_forms_tell_what_makes_up_a_file(cas: CasClient) -> None:
    first, second = await reconstruction(cas, version=1), await reconstruction(cas)

    terms = [
        {"hash": to_text(xorb), "unpacked_length": length, "range": {"start": start, "end": end}}
        for xorb, length, start, end in MIXED_SEGMENTS
    ]
    for found in (first, second):
        assert found["offset_into_first_range"] == 0
        assert found["terms"] == terms
    assert without_urls(first["fetch_info"]) == {
        XORB_NAME: [
            {"range": {"start": 0, "end": 3}, "url_range": {"start": 0, "end": len(XORB) - 1}},
        ],
        to_text(SECOND_HASH): [
            {"range": {"start": 0, "end": 1}, "url_range": {"start": 0, "end": 11}},
            {"range": {"start": 2, "end": 3}, "url_range": {"start": 25, "end": 37}},
        ],
    }
    assert without_urls(second["xorbs"][to_text(SECOND_HASH)]) == [
        {
            "ranges": [
                {"chunks": {"start": 0, "end": 1}, "bytes": {"start": 0, "end": 11}},
                {"chunks": {"start": 2, "end": 3}, "bytes": {"start": 25, "end": 37}},
            ]
        }
    ]
    assert await cas.download(MIXED_FILE) == b"".join(MIXED)


def without_urls(found: Any) -> Any:
    if isinstance(found, list):
        return [without_urls(each) for each in found]
    if isinstance(found, dict):
        return {name: without_urls(each) for name, each in found.items() if name != "url"}
    return found


async def test_several_files_are_reconstructed_at_once(cas: CasClient) -> None:
    unknown = "f" * 64
    found = await cas.get(
        f"/v1/reconstructions?file_id={FILE}&file_id={unknown}&file_id={MIXED_FILE}"
    )
    each = {file: await reconstruction(cas, file, version=1) for file in (FILE, MIXED_FILE)}
    assert found.json()["files"] == {file: each[file]["terms"] for file in each}
    xorbs = without_urls(found.json()["fetch_info"])
    assert xorbs[to_text(SECOND_HASH)] == without_urls(
        each[MIXED_FILE]["fetch_info"][to_text(SECOND_HASH)]
    )
    assert len(xorbs[XORB_NAME]) == 2


async def test_a_range_of_a_file_takes_only_its_chunks(cas: CasClient) -> None:
    content = b"".join(MIXED)
    for start, end in [(0, 1), (20, 35), (34, 38), (len(content) - 1, len(content) + 99)]:
        data = await cas.download(MIXED_FILE, Range=f"bytes={start}-{end - 1}")
        assert data.startswith(content[start:end]), (start, end)
    found = (await cas.get(f"/v1/reconstructions/{MIXED_FILE}", Range="bytes=34-36")).json()
    assert list(found["fetch_info"]) == [to_text(SECOND_HASH)]
    assert found["offset_into_first_range"] == 1


async def test_a_range_past_the_end_cannot_be_satisfied(cas: CasClient) -> None:
    for version in (1, 2):
        path = f"/v{version}/reconstructions/{FILE}"
        response = await cas.get(path, Range=f"bytes={len(CONTENT)}-")
        assert response.status_code == 416
        assert response.headers["Content-Range"] == f"bytes */{len(CONTENT)}"


async def test_a_file_that_the_repository_does_not_have_is_not_found(cas: CasClient) -> None:
    for version in (1, 2):
        response = await cas.get(f"/v{version}/reconstructions/{XORB_NAME}")
        assert response.status_code == 404
        assert response.json() == {"error": f"This repository has no file {XORB_NAME}."}


async def test_a_file_that_the_repository_lost_is_not_found(
    cas: CasClient, database: Database
) -> None:
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_blobs")
    assert (await cas.get(f"/v2/reconstructions/{FILE}")).status_code == 404


async def test_a_file_of_a_bucket_is_found_by_its_entry(
    client: httpx2.AsyncClient, database: Database, ada: Headers, cas: CasClient
) -> None:
    await a_repo(client, ada, "ada/store", type="bucket")
    source = {"sourceRepoType": "model", "sourceRepoId": "ada/engine"}
    line = {"type": "copyFile", "path": "file", "xetHash": FILE, "mtime": 0, **source}
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_blobs SET is_used = TRUE")
    copied = await client.post(
        "/api/buckets/ada/store/batch",
        headers=ada | {"Content-Type": "application/x-ndjson"},
        content=json.dumps(line),
    )
    assert copied.status_code == 200, copied.text
    reader = await cas_of(client, ada, "read", repo="buckets/ada/store")
    assert await reader.download(FILE) == CONTENT


async def data_url(cas: CasClient) -> str:
    """Return an address for two ranges of the second xorb, of 12 and 13 bytes."""
    [fetch] = (await reconstruction(cas))["xorbs"][to_text(SECOND_HASH)]
    url: str = fetch["url"]
    return url


async def fetch(cas: CasClient, url: str, ranges: str | None) -> httpx2.Response:
    return await cas.client.get(url, headers={"Range": ranges} if ranges else {})


async def test_data_needs_no_token_and_only_the_range_is_sent(cas: CasClient) -> None:
    stored = make_xorb(SECOND)[1]
    response = await fetch(cas, await data_url(cas), "bytes=25-37")
    assert (response.status_code, response.content) == (206, stored[25:38])
    size = re.fullmatch(r"bytes 25-37/(\d+)", response.headers["Content-Range"])
    assert size is not None
    assert int(size[1]) > len(stored)
    assert response.headers["Content-Length"] == "13"


async def test_several_ranges_come_in_parts(cas: CasClient) -> None:
    stored = make_xorb(SECOND)[1]
    response = await fetch(cas, await data_url(cas), "bytes=0-11, 25-37")
    head = f"Content-Type: {response.headers['Content-Type']}\r\n\r\n".encode()
    parts: Any = message_from_bytes(head + response.content).get_payload()
    assert [part.get_payload(decode=True) for part in parts] == [stored[:12], stored[25:38]]
    assert [part["Content-Range"].partition("/")[0] for part in parts] == [
        "bytes 0-11",
        "bytes 25-37",
    ]
    assert response.headers["Content-Length"] == str(len(response.content))


@pytest.mark.parametrize("ranges", ["bytes=0-12", "bytes=12-24", "bytes=0-11,24-37", "bytes=0-37"])
async def test_bytes_that_the_address_is_not_for_are_refused(cas: CasClient, ranges: str) -> None:
    response = await fetch(cas, await data_url(cas), ranges)
    assert response.status_code == 403
    assert response.json() == {"error": "This address is not for these bytes."}


@pytest.mark.parametrize(
    "ranges",
    [None, "bytes=0-", "bytes=-5", "lines=0-1", "bytes=9-0", "bytes=" + "0-1," * 64 + "0-1"],
)
async def test_a_range_of_another_form_is_refused(cas: CasClient, ranges: str | None) -> None:
    response = await fetch(cas, await data_url(cas), ranges)
    assert response.status_code == 400
    assert response.json()["error"].startswith("Range must name ")


async def test_a_changed_address_is_refused(cas: CasClient) -> None:
    url = await data_url(cas)
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    changes = [
        {"ranges": "0-37"},
        {"ranges": "x"},
        {"expires": str(int(query["expires"]) + 1)},
        {"user": "grace"},
        {"user": ""},
        {"signature": "0" * 64},
        {"signature": "é"},
    ]
    changed = [parts._replace(query=urlencode(query | each)).geturl() for each in changes]
    changed.append(url.replace(to_text(SECOND_HASH), XORB_NAME))
    changed.append(url.replace("-0/v1/data", "-1/v1/data"))
    for each in changed:
        assert (await fetch(cas, each, "bytes=0-11")).status_code == 403, each


async def test_an_address_ends_after_five_minutes(cas: CasClient) -> None:
    url = await data_url(cas)
    assert timedelta(minutes=5) >= DATA_LIFE
    clock.move(DATA_LIFE - timedelta(seconds=5))
    try:
        assert (await fetch(cas, url, "bytes=0-11")).status_code == 206
        clock.move(timedelta(seconds=7))
        assert (await fetch(cas, url, "bytes=0-11")).status_code == 403
    finally:
        clock.reset()


async def test_data_that_is_gone_is_not_found(cas: CasClient, app: FastAPI) -> None:
    url = await data_url(cas)
    key = xorb_key(object_name(SECOND))
    app.state.cas.store.delete([key], before=clock.now() + timedelta(days=1))
    assert (await fetch(cas, url, "bytes=0-11")).status_code == 404


async def test_a_browser_may_use_the_cas_from_any_page(cas: CasClient) -> None:
    asked = await cas.client.options(await data_url(cas), headers={"Origin": "https://example.com"})
    assert asked.status_code == 204
    allowed = asked.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"Authorization", "Range", "X-Xet-Session-Id"} <= set(allowed)
    for response in (
        await fetch(cas, await data_url(cas), "bytes=0-11"),
        await cas.get(f"/v2/reconstructions/{FILE}"),
    ):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in response.headers
        assert "Content-Range" in response.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("prefix", ["default", "default-merkledb"])
async def test_a_chunk_query_finds_the_xorb_for_those_who_have_the_chunks(
    cas: CasClient, prefix: str
) -> None:
    response = await cas.get(f"/v1/chunks/{prefix}/{to_text(nodes(CHUNKS)[0].hash)}")

    assert response.status_code == 200
    key, _, expires_at = struct.unpack_from("<32s2Q", response.content, len(response.content) - 128)
    shard = parse(response.content)
    assert shard.files == []
    # The last file that begins with it has pieces of both xorbs.
    assert [xorb.hash for xorb in shard.xorbs] == [XORB_HASH, SECOND_HASH]
    assert [chunk.hash for chunk in shard.xorbs[0].chunks] == [
        keyed_hash(node.hash, key) for node in nodes(CHUNKS)
    ]
    life = expires_at - clock.micros() // 1_000_000
    assert life in range(int(QUERY_LIFE.total_seconds()) - 300, int(QUERY_LIFE.total_seconds()) + 1)


async def test_each_answer_has_a_key_of_its_own(cas: CasClient) -> None:
    path = f"/v1/chunks/default/{to_text(nodes(CHUNKS)[0].hash)}"
    assert (await cas.get(path)).content != (await cas.get(path)).content


async def test_only_the_first_chunk_and_rare_ones_are_found(cas: CasClient) -> None:
    found = []
    rare = next(
        chunk
        for number in range(1 << 20)
        if last_number(nodes([chunk := b"%d" % number])[0].hash) % 1024 == 0
    )
    chunks = [b"start", b"middle", rare, b"end"]
    await cas.upload(chunks)
    for chunk in chunks:
        response = await cas.get(f"/v1/chunks/default/{to_text(nodes([chunk])[0].hash)}")
        found.append(response.status_code)
    assert found == [200, 404, 200, 404]


async def test_a_xorb_that_the_repository_lost_is_not_told_of(
    cas: CasClient, database: Database
) -> None:
    path = f"/v1/chunks/default/{to_text(nodes(CHUNKS)[0].hash)}"
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_xorbs WHERE xorb = $1", object_name(SECOND))
    shard = parse((await cas.get(path)).content)
    assert [xorb.hash for xorb in shard.xorbs] == [XORB_HASH]
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_xorbs")
    assert (await cas.get(path)).status_code == 404


async def test_at_most_fifteen_xorbs_follow(cas: CasClient) -> None:
    runs = [[b"chunk %d" % at * 2000] for at in range(20)]
    hashes = [make_xorb(run)[0] for run in runs]
    for run in runs:
        await cas.upload_xorb(run)
    segments = [
        Segment(digest, len(run[0]), 0, 1) for digest, run in zip(hashes, runs, strict=True)
    ]
    chunks = [run[0] for run in runs]
    await cas.register(make_shard([shard_file(chunks, segments)], []))
    response = await cas.get(f"/v1/chunks/default/{to_text(nodes(chunks)[0].hash)}")
    assert [xorb.hash for xorb in parse(response.content).xorbs] == hashes[:16]


async def test_a_xorb_that_no_content_uses_is_not_told_of(
    cas: CasClient, database: Database
) -> None:
    path = f"/v1/chunks/default/{to_text(nodes(CHUNKS)[0].hash)}"
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_xorbs SET unused_since = 1 WHERE xorb = $1", object_name())
    shard = parse((await cas.get(path)).content)
    assert [xorb.hash for xorb in shard.xorbs] == [SECOND_HASH]


async def test_telemetry_is_thrown_away(cas: CasClient) -> None:
    assert (await cas.post("/v1/telemetry", b"{}")).status_code == 204
    assert (await cas.client.post("http://hub.test/v1/telemetry", content=b"{}")).status_code == 204
