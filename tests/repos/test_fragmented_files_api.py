"""A file of many pieces of several xorbs: however it is read, at any border, it is the same bytes."""

import itertools
import random
from email import message_from_bytes
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import file_hash, to_text
from people import Headers
from repos.commits import ARepo, a_repo, lfs_file
from repos.content import sha256
from repos.xet import CasClient, cas_of, read_terms
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

_CHANCE = random.Random(17)

# Three xorbs, each compressed in another way; no two chunks have the same length.
XORBS = [
    [_CHANCE.randbytes(64) * 130 + bytes(80 * number + at) for at in range(80)]
    for number in range(3)
]
HASHES = [make_xorb(chunks, scheme)[0] for scheme, chunks in enumerate(XORBS)]
# Single chunks far apart, more of them than one address is for; runs; what was there before; and
# runs that share chunks with others.
PIECES = [
    *((2, at, at + 1) for at in range(0, 80, 2)),
    *((1, at, at + 1) for at in range(39, 0, -3)),
    *((0, at, at + 1) for at in range(40)[::-1]),
    (0, 3, 17), (1, 0, 80), (0, 10, 20), (2, 7, 8), (2, 7, 8), (2, 6, 9), (0, 39, 40),
]  # fmt: skip
CHUNKS = [chunk for xorb, start, end in PIECES for chunk in XORBS[xorb][start:end]]
CONTENT = b"".join(CHUNKS)
FILE = to_text(file_hash(nodes(CHUNKS)))
SEGMENTS = [
    Segment(HASHES[xorb], sum(map(len, XORBS[xorb][start:end])), start, end)
    for xorb, start, end in PIECES
]
SHARD = make_shard(
    [shard_file(CHUNKS, SEGMENTS, sha256=sha256(CONTENT))], [shard_xorb(each) for each in XORBS]
)

_BORDERS = list(itertools.accumulate((len(chunk) for chunk in CHUNKS), initial=0))
# Where single chunks follow each other, within a run, where runs meet, and both ends of the file.
RANGES = [
    (border + before, border + after)
    for border in (_BORDERS[1], _BORDERS[40], _BORDERS[80], _BORDERS[88], _BORDERS[-2])
    for before, after in ((-1, 1), (0, 1), (-1, 0), (-9000, 20_001))
] + [(0, 1), (len(CONTENT) - 1, len(CONTENT)), (1, len(CONTENT) - 1)]
RANGES = [(max(start, 0), min(end, len(CONTENT))) for start, end in RANGES]


@pytest.fixture
async def cas(client: httpx2.AsyncClient, database: Database, ada: Headers) -> CasClient:
    """The CAS of a repository whose model.bin is the file."""
    repo: ARepo = await a_repo(client, database, ada)
    cas = await cas_of(client, ada)
    for scheme, chunks in enumerate(XORBS):
        digest, body = make_xorb(chunks, scheme)
        uploaded = await cas.post(f"/v1/xorbs/default/{to_text(digest)}", body)
        assert uploaded.json() == {"was_inserted": True}
    assert (await cas.register(SHARD)).json() == {"result": 1}
    await repo.commit(ada, lfs_file("model.bin", sha256(CONTENT), size=len(CONTENT)))
    return cas


async def test_the_whole_file_is_the_same_in_every_way(
    client: httpx2.AsyncClient, cas: CasClient
) -> None:
    plain = await client.get("/ada/engine/resolve/main/model.bin")

    assert plain.content == CONTENT
    assert plain.headers["X-Xet-Hash"] == FILE
    assert await read_first_form(cas) == CONTENT
    assert await cas.download(FILE) == CONTENT
    assert await read_in_parts(cas) == CONTENT


async def test_a_range_at_any_border_is_the_same_in_every_way(
    client: httpx2.AsyncClient, cas: CasClient
) -> None:
    for start, end in RANGES:
        asked = {"Range": f"bytes={start}-{end - 1}"}
        plain = await client.get("/ada/engine/resolve/main/model.bin", headers=asked)
        expected = CONTENT[start:end]

        assert (plain.status_code, plain.content == expected) == (206, True), (start, end)
        # The client cuts the end itself.
        assert (await read_first_form(cas, **asked))[: end - start] == expected, (start, end)
        assert (await cas.download(FILE, **asked))[: end - start] == expected, (start, end)


async def test_no_chunk_is_fetched_twice(cas: CasClient) -> None:
    """However many pieces of the file have it."""
    found = (await cas.get(f"/v2/reconstructions/{FILE}")).json()
    assert len(found["terms"]) == len(PIECES)
    assert [len(found["xorbs"][to_text(each)]) for each in HASHES] == [1, 1, 2]
    for fetches in found["xorbs"].values():
        ranges = [part["chunks"] for fetch in fetches for part in fetch["ranges"]]
        chunks = [at for part in ranges for at in range(part["start"], part["end"])]
        assert sorted(chunks) == sorted(set(chunks))


async def read_first_form(cas: CasClient, **headers: str) -> bytes:
    found = (await cas.get(f"/v1/reconstructions/{FILE}", **headers)).json()
    found["xorbs"] = {
        xorb: [
            {
                "url": each["url"],
                "ranges": [{"chunks": each["range"], "bytes": each["url_range"]}],
            }
            for each in fetches
        ]
        for xorb, fetches in found["fetch_info"].items()
    }
    return await read_terms(cas.client, found)


async def read_in_parts(cas: CasClient) -> bytes:
    """Fetch all ranges of an address at once, as the JavaScript client does."""
    found = (await cas.get(f"/v2/reconstructions/{FILE}")).json()
    stored: dict[tuple[str, int], bytes] = {}
    for fetches in found["xorbs"].values():
        for fetch in fetches:
            for first, data in await _parts(cas.client, fetch):
                stored[fetch["url"], first] = data

    class FetchedParts:
        """Answers as the hub does, from what was fetched."""

        async def get(self, url: str, *, headers: dict[str, str]) -> httpx2.Response:
            first = int(headers["Range"].removeprefix("bytes=").partition("-")[0])
            return httpx2.Response(206, content=stored[url, first])

    fetched: Any = FetchedParts()
    return await read_terms(fetched, found)


async def _parts(client: httpx2.AsyncClient, fetch: Any) -> list[tuple[int, bytes]]:
    """Return the parts of an address, each with its first byte in the stored xorb."""
    ranges = [(part["bytes"]["start"], part["bytes"]["end"]) for part in fetch["ranges"]]
    asked = ",".join(f"{first}-{last}" for first, last in ranges)
    response = await client.get(fetch["url"], headers={"Range": f"bytes={asked}"})
    assert response.status_code == 206
    if len(ranges) == 1:
        return [(ranges[0][0], response.content)]
    head = f"Content-Type: {response.headers['Content-Type']}\r\n\r\n".encode()
    parts: Any = message_from_bytes(head + response.content).get_payload()
    return [
        (first, part.get_payload(decode=True))
        for (first, _), part in zip(ranges, parts, strict=True)
    ]
