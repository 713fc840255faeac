"""What the time of an upload tells of its content: does another repository have it, or nobody?

Ada's private repository has half of the contents that eve then uploads to her own, in random order,
one call after the other: asked for with `preupload` and the LFS batch, sent as a xorb, registered by
a shard. The AUC and the two clocks are those of `revoke`. A hub that does not write again what it has
must be seen as one that leaks.
"""

import base64
import hashlib
import random
import struct
import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import httpx2

from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, a_token
from benchmarks.subjects.revoke import calling, mann_whitney_auc
from benchmarks.workbench import Workbench
from hublet.accounts.users.service import create_user
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.repos.xet import uploads
from hublet.storage.object_store import ObjectStore, xorb_key
from hublet.storage.records import Xorb
from hublet.storage.spools import Spool
from hublet.storage.xet_hashes import (
    Node,
    chunk_hash,
    file_hash,
    from_text,
    range_hash,
    to_text,
    xorb_hash,
)
from hublet.storage.xorb_objects import put_xorb
from hublet.storage.xorbs import XorbLayout, chunk_header
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

# Of each kind: chance alone stays within 0.05 in 9,998 of 10,000 runs.
_CALLS = 1000
_FEWEST_CALLS = 20
_BOUND = 0.05
_CHUNKS = 4
_CHUNK_BYTES = 64 * 1024
_CLOCKS = (time.perf_counter_ns, time.process_time_ns)
_TAG = b"HFRepoMetaData\x00" + bytes.fromhex("556967456a7b815783a5bdd95ccdd14aa9")
_END = b"\xff" * 32 + bytes(16)
_STEPS = ("preupload", "LFS batch", "xorb", "shard")

# By step and kind (known to others or not), the durations of all calls by each clock.
Times = dict[str, dict[bool, list[list[int]]]]


def measure(bench: Workbench) -> Iterator[Row]:
    """What the time of an upload tells of what other repositories have."""
    calls = max(_FEWEST_CALLS, round(_CALLS * bench.share))
    for engine in ENGINES:
        settings = bench.site(engine).settings(server__test_mode=True)
        yield from run_loop(_rows(settings, engine, calls=calls))


async def _rows(settings: Settings, engine: str, *, calls: int) -> list[Row]:
    async with calling(settings) as (client, database):
        owner = await _uploader(client, await a_token(database), "ada/secret")
        stranger = await _uploader(client, await _token_of(database, "eve"), "eve/copy")
        times = await _time_all(owner, stranger, calls=calls)
        with patch.object(uploads, "put_xorb", _put_if_new):
            leak = await _time_all(owner, stranger, calls=calls)
    rows = [
        _row(f"known uploads: what time tells of others, {step}, {engine}", times[step], calls)
        for step in _STEPS
    ]
    goal = Goal(floor=_BOUND, more_is_better=True, of="ours")
    name = f"known uploads: the same where a known xorb is not written, {engine}"
    note = "the method sees a leak if this is above the floor"
    return [
        *rows,
        Row(subject=name, unit="", ours=abs(_auc(leak["xorb"]) - 0.5), goal=goal, note=note),
    ]


def _row(subject: str, times: dict[bool, list[list[int]]], calls: int) -> Row:
    auc = _auc(times)
    return Row(
        subject=subject,
        unit="",
        ours=abs(auc - 0.5),
        goal=Goal(floor=_BOUND, more_is_better=False, of="ours"),
        note=f"distance of the AUC from 0.5 (it is {auc:.3f}), {calls} calls of each kind",
    )


def _put_if_new(store: ObjectStore, spool: Spool, layout: XorbLayout, *, form: str) -> Xorb:
    name = f"{to_text(layout.hash)}-{form}"
    if store.stat(xorb_key(name)) is None:
        return put_xorb(store, spool, layout, form=form)
    return Xorb(name=name, chunks=len(layout), size=layout.size, stored_size=layout.stored_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """A file of one xorb, as the public client uploads it."""

    sha256: str
    sample: bytes
    size: int
    xorb_hash: str
    xorb: bytes
    shard: bytes


def _content() -> _Content:
    chunks = [random.randbytes(_CHUNK_BYTES) for _ in range(_CHUNKS)]
    nodes = [Node(chunk_hash(chunk), len(chunk)) for chunk in chunks]
    sha256 = hashlib.sha256(b"".join(chunks)).hexdigest()
    headers = (chunk_header(0, stored=len(chunk), length=len(chunk)) for chunk in chunks)
    return _Content(
        sha256=sha256,
        sample=chunks[0][:512],
        size=_CHUNKS * _CHUNK_BYTES,
        xorb_hash=to_text(xorb_hash(nodes)),
        xorb=b"".join(part for pair in zip(headers, chunks, strict=True) for part in pair),
        shard=_shard(nodes, sha256),
    )


def _shard(nodes: Sequence[Node], sha256: str) -> bytes:
    size, xorb = sum(node.length for node in nodes), xorb_hash(nodes)
    records = [
        _record(file_hash(nodes), 3 << 30, 1),
        _record(xorb, 0, size, 0, len(nodes)),
        _record(range_hash(b"".join(node.hash for node in nodes))),
        _record(from_text(sha256)),
        _END,
        _record(xorb, 0, len(nodes), size),
        *(_record(node.hash, at * _CHUNK_BYTES, node.length) for at, node in enumerate(nodes)),
        _END,
    ]
    return _TAG + struct.pack("<2Q", 2, 0) + b"".join(records)


def _record(digest: bytes, *numbers: int) -> bytes:
    return digest + struct.pack("<4I", *numbers, *[0] * (4 - len(numbers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Uploader:
    client: httpx2.AsyncClient
    headers: dict[str, str]
    repo: str
    cas_url: str
    cas_headers: dict[str, str]

    def requests(self, content: _Content) -> dict[str, Awaitable[httpx2.Response]]:
        """Return the requests of an upload in their order."""
        file = {
            "path": f"{content.sha256}.bin",
            "sample": base64.b64encode(content.sample).decode(),
            "size": content.size,
        }
        wanted = {
            "operation": "upload",
            "transfers": ["basic"],
            "objects": [{"oid": content.sha256, "size": content.size}],
            "hash_algo": "sha256",
        }
        post = self.client.post
        batch, xorb = f"/{self.repo}.git/info/lfs/objects/batch", content.xorb_hash
        return {
            "preupload": post(
                f"/api/models/{self.repo}/preupload/main",
                json={"files": [file]},
                headers=self.headers,
            ),
            "LFS batch": post(batch, json=wanted, headers=self.headers),
            "xorb": post(
                f"{self.cas_url}/v1/xorbs/default/{xorb}",
                content=content.xorb,
                headers=self.cas_headers,
            ),
            "shard": post(
                f"{self.cas_url}/v1/shards", content=content.shard, headers=self.cas_headers
            ),
        }


async def _uploader(client: httpx2.AsyncClient, token: str, repo: str) -> _Uploader:
    headers = {"Authorization": f"Bearer {token}"}
    body = {"name": repo, "private": True}
    created = await client.post("/api/repos/create", json=body, headers=headers)
    assert created.status_code == 200, created.text
    access = await client.get(f"/api/models/{repo}/xet-write-token/main", headers=headers)
    return _Uploader(
        client=client,
        headers=headers,
        repo=repo,
        cas_url=access.json()["casUrl"],
        cas_headers={"Authorization": f"Bearer {access.json()['accessToken']}"},
    )


async def _token_of(database: Database, name: str) -> str:
    async with database.transaction() as conn:
        user = await create_user(conn, name)
        _, value = await tokens.issue(conn, user_id=user.id, name=name, role=TokenRole.write)
    return value


async def _time_all(owner: _Uploader, stranger: _Uploader, *, calls: int) -> Times:
    """Time each step of uploads of known and unknown contents, in random order."""
    times: Times = {step: {True: [], False: []} for step in _STEPS}
    kinds = [True, False] * calls
    for is_known in random.sample(kinds, k=len(kinds)):
        content, other = _content(), _content()
        # The owner uploads each time, so that what precedes a call is the same for both kinds.
        for request in owner.requests(content if is_known else other).values():
            assert (await request).status_code == 200
        for step, request in stranger.requests(content).items():
            started_at = [read() for read in _CLOCKS]
            response = await request
            times[step][is_known].append(
                [read() - at for read, at in zip(_CLOCKS, started_at, strict=True)]
            )
            assert response.status_code == 200, response.text
    return times


def _auc(times: dict[bool, list[list[int]]]) -> float:
    by_clock = zip(zip(*times[True], strict=True), zip(*times[False], strict=True), strict=True)
    aucs = [mann_whitney_auc(longer=longer, shorter=shorter) for longer, shorter in by_clock]
    return max(aucs, key=lambda auc: abs(auc - 0.5))
