"""The twelve hostile inputs of Xet over HTTP: refused with the reason, cheap, and nothing is left."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import lz4.frame
import pytest
from lz4.frame import LZ4FrameDecompressor

from hublet.core.database import Database
from hublet.storage import xorbs as xorbs_module
from hublet.storage.object_store import LocalStore
from hublet.storage.workers import processes
from hublet.storage.xet_hashes import to_text
from hublet.storage.xorbs import LARGEST_CHUNK
from people import Headers
from repos.xet import CHUNKS, FILE, XORB_NAME, CasClient, cas_of, shard_of, whole
from repositories import a_repo
from storage.xet_content import header, make_shard, make_xorb, record, shard_file, shard_header

# What a segment of a file may name, and what the hub has not got.
OTHER = (b"other ", b"chunks ", b"of the same number")
OTHER_HASH, OTHER_XORB = make_xorb(OTHER)
OTHER_NAME = to_text(OTHER_HASH)
NOBODYS = "ff" * 16 + "00" * 16

FLIPPED = bytes([*OTHER_XORB[:-1], OTHER_XORB[-1] ^ 1])
FLIPPED_NAME = to_text(make_xorb([*OTHER[:2], b"of the same numbes"])[0])
BOMB = lz4.frame.compress(bytes(50_000_000))

TABLES = (
    "blobs",
    "layouts",
    "layout_segments",
    "xorbs",
    "repo_blobs",
    "repo_layouts",
    "repo_xorbs",
    "repo_chunks",
)


class HostileInput(NamedTuple):
    body: bytes
    sentence: str
    # Of the xorb that it claims to be; a shard without one.
    name: str | None = None


# The shard of the file that the repository has: two hashes of it, and what it says of the segment.
GOOD = shard_file(CHUNKS, [whole()])
FILE_HASH, RANGE_HASH = GOOD[:32], GOOD[96:128]


def shard_with(old: bytes, new: bytes) -> bytes:
    assert GOOD.count(old) == 1
    return make_shard([GOOD.replace(old, new)], [])


def shard_with_segment(**changes: Any) -> bytes:
    return make_shard([shard_file(CHUNKS, [whole()._replace(**changes)])], [])


HOSTILE = {
    "flipped byte": HostileInput(
        FLIPPED,
        f"The xorb's content has the hash {FLIPPED_NAME}, not {OTHER_NAME}.",
        OTHER_NAME,
    ),
    "foreign hash": HostileInput(
        OTHER_XORB, f"The xorb's content has the hash {OTHER_NAME}, not {NOBODYS}.", NOBODYS
    ),
    "truncation": HostileInput(
        OTHER_XORB[:-1], "The xorb ends within the chunk at byte 29.", OTHER_NAME
    ),
    "junk at the end": HostileInput(
        OTHER_XORB + b"junk and more",
        f"The chunk at byte {len(OTHER_XORB)} has the version {ord('j')}; only 0 is known.",
        OTHER_NAME,
    ),
    "LZ4 bomb": HostileInput(
        header(len(BOMB), 1, LARGEST_CHUNK) + BOMB,
        f"A chunk does not hold the {LARGEST_CHUNK} bytes that its header announces.",
        OTHER_NAME,
    ),
    "shard before its xorbs": HostileInput(
        shard_of(OTHER), f"The xorb {OTHER_NAME} was not uploaded here."
    ),
    "shard with changed file hash": HostileInput(
        shard_with(FILE_HASH, b"x" * 32),
        f"The segments do not make up the file {to_text(b'x' * 32)}.",
    ),
    "shard with changed xorb": HostileInput(
        shard_with_segment(xorb=OTHER_HASH),
        f"The xorb {OTHER_NAME} was not uploaded here.",
    ),
    "shard with changed length": HostileInput(
        shard_with_segment(length=48),
        "A segment's length is not that of its chunks: 49, not 48.",
    ),
    "shard with changed range": HostileInput(
        shard_with_segment(end=4),
        f"A segment names the chunks from 0 to before 4 of the xorb {XORB_NAME}, which has 3.",
    ),
    "shard with changed verification": HostileInput(
        shard_with(RANGE_HASH, b"x" * 32),
        "A segment's verification record does not match its chunks.",
    ),
    "4 G entries claimed": HostileInput(
        shard_header() + record(FILE_HASH, 1 << 31, 2**32 - 1, 0, 0),
        f"The shard ends before the {2**32 - 1} records that must follow.",
    ),
}
SHARDS = {name: each for name, each in HOSTILE.items() if each.name is None}


@pytest.fixture
async def cas(client: httpx2.AsyncClient, ada: Headers) -> CasClient:
    """The CAS of a repository that has one file."""
    await a_repo(client, ada, "ada/engine")
    cas = await cas_of(client, ada)
    await cas.upload()
    return cas


async def send(cas: CasClient, hostile: HostileInput) -> httpx2.Response:
    path = "/v1/shards" if hostile.name is None else f"/v1/xorbs/default/{hostile.name}"
    return await cas.post(path, hostile.body)


async def kept(database: Database) -> tuple[list[Path], dict[str, list[Any]]]:
    """Return all files of the store, spools too, and all rows of what it holds."""
    folder = database.hub.settings.database.data_dir
    files = [path for name in ("xorbs", "blobs") for path in folder.glob(f"{name}/**/*")]
    async with database.read() as conn:
        rows = {each: await conn.fetch_all(f"SELECT * FROM {each}") for each in TABLES}
    return sorted(path for path in files if path.is_file()), {
        name: [dict(row) for row in found] for name, found in rows.items()
    }


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_input_is_refused_and_leaves_nothing(
    cas: CasClient, database: Database, hostile: HostileInput
) -> None:
    before = await kept(database)
    response = await send(cas, hostile)
    assert (response.status_code, response.json()) == (400, {"error": hostile.sentence})
    assert await kept(database) == before
    assert await cas.download(FILE) == b"".join(CHUNKS)


@pytest.mark.parametrize("hostile", SHARDS.values(), ids=SHARDS)
async def test_the_second_form_refuses_it_too(
    cas: CasClient, database: Database, hostile: HostileInput
) -> None:
    before = await kept(database)
    response = await cas.register(hostile.body, version=2)
    last = json.loads(response.content.splitlines()[-1])
    if response.status_code == 400:
        assert last == {"error": hostile.sentence}
    else:
        assert last == {"type": "error", "message": hostile.sentence, "retryable": False}
    assert await kept(database) == before


class Work:
    """What the hub does for a request: bytes that it decompresses, and reads from the store."""

    decompressed = 0
    read = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Let this process do what worker processes do, where it can be counted."""
    work = Work()

    class Decompressor:
        def __init__(self) -> None:
            self._real = LZ4FrameDecompressor()

        def decompress(self, data: memoryview, most: int) -> bytes:
            content: bytes = self._real.decompress(data, most)
            work.decompressed += len(content)
            return content

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    def pieces(store: LocalStore, *arguments: Any) -> Any:
        for piece in real_pieces(store, *arguments):
            work.read += len(piece)
            yield piece

    async def run(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    real_pieces = LocalStore.pieces
    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setattr(LocalStore, "pieces", pieces)
    monkeypatch.setattr(xorbs_module, "LZ4FrameDecompressor", Decompressor)
    return work


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_input_costs_little(
    cas: CasClient, work: Work, hostile: HostileInput
) -> None:
    # Whatever a first request of the kind does once.
    await send(cas, hostile)
    work.read = work.decompressed = 0
    tracemalloc.start()
    try:
        await send(cas, hostile)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert work.decompressed <= LARGEST_CHUNK + 1
    # The layout of a xorb, and nothing of its content.
    assert work.read <= 1000
    assert peak < 2_000_000
