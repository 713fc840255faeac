"""Transcripts: all that a caller hears while content goes to a repository and comes back from it.

Two transcripts of contents that are alike are equal if the hub tells nothing but what the caller
brought: hashes and ids are replaced by the order in which they first occur, times are left out.
"""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.repos.xet import ingestion
from hublet.storage.shards import Segment, parse
from hublet.storage.xet_hashes import file_hash, to_text
from people import Headers
from repos.content import sha256
from repos.lfs import batch, object_requests
from repos.xet import CasClient, cas_of, shard_of
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

NDJSON = {"Content-Type": "application/x-ndjson"}
_IDS = re.compile(r"[0-9a-f]{20,}(?:-[0-9a-f]{32})?")
# These change with the second in which they are made.
_TIMES = re.compile(r"expires=\d+|signature=[0-9a-f]+|eyJ[\w.-]+|\d{4}-\d\d-\d\dT[\d:.]+Z")
_HEADERS = ("etag", "x-linked-etag", "x-linked-size", "x-xet-hash", "link", "content-length")


class Transcript:
    """Does with one repository what a client does, and notes each response."""

    def __init__(
        self, client: httpx2.AsyncClient, database: Database, headers: Headers, repo: str
    ) -> None:
        self._client = client
        self._database = database
        self._headers = headers
        # As in addresses: `models/eve/one`.
        self._repo = repo
        self._name = repo.partition("/")[2]
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        seen: dict[str, str] = {}
        text = _TIMES.sub("<time>", "\n".join(self._lines)).replace(self._name, "OWNER/REPO")
        return _IDS.sub(lambda found: seen.setdefault(found[0], f"<{len(seen)}>"), text)

    def _note(self, response: httpx2.Response) -> httpx2.Response:
        told = {name: response.headers[name] for name in _HEADERS if name in response.headers}
        told.pop("content-length", None)
        self._lines.append(f"{response.status_code} {told} {response.text}")
        return response

    async def _get(self, path: str) -> httpx2.Response:
        return self._note(await self._client.get(path, headers=self._headers))

    async def by_xet(self, chunks: Sequence[bytes], scheme: int = 0) -> None:
        """Upload as the public client does, then commit."""
        cas = await self.cas()
        digest, data = make_xorb(chunks, scheme)
        self._note(await cas.post(f"/v1/xorb-grants/default/{to_text(digest)}"))
        self._note(await cas.post(f"/v1/xorbs/default/{to_text(digest)}", data))
        self._note(await cas.register(shard_of(chunks)))
        self._note(await cas.register(shard_of(chunks), version=2))
        content = b"".join(chunks)
        await self._ask_before_uploads(content)
        await self._commit(content)
        await self._read(cas, to_text(file_hash(nodes(chunks))), to_text(nodes(chunks)[0].hash))

    async def by_lfs(self, chunks: Sequence[bytes]) -> None:
        """Upload the whole content, commit, and wait until it is cut."""
        content = b"".join(chunks)
        await self._ask_before_uploads(content)
        await self.send_by_lfs(content)
        await self._commit(content)
        await self._look()
        await ingestion.cut_waiting(self._database)
        cas = await self.cas()
        hashes = nodes([content])
        await self._read(cas, to_text(file_hash(hashes)), to_text(hashes[0].hash))

    async def send_by_lfs(self, content: bytes) -> None:
        answer = await batch(
            self._client, self._headers, object_requests(content), repo=f"{self._name}.git"
        )
        [action] = answer.json()["objects"]
        sent = await self._client.put(action["actions"]["upload"]["href"], content=content)
        assert sent.status_code == 200, sent.text

    async def cas(self) -> CasClient:
        return await cas_of(self._client, self._headers, repo=self._repo)

    async def by_put(self, chunks: Sequence[bytes]) -> None:
        """Put the whole content into a bucket."""
        content = b"".join(chunks)
        path = f"/api/{self._repo}/files/a.bin"
        self._note(await self._client.put(path, headers=self._headers, content=content))
        cas = await self.cas()
        hashes = nodes([content])
        await self._read(cas, to_text(file_hash(hashes)), to_text(hashes[0].hash))

    async def _ask_before_uploads(self, content: bytes) -> None:
        sample = base64.b64encode(content).decode()
        for attributes in ("* filter=lfs", ""):
            body: dict[str, Any] = {
                "files": [{"path": "a.bin", "sample": sample, "size": len(content)}],
                "gitAttributes": attributes,
            }
            path = f"/api/{self._repo}/preupload/main"
            self._note(await self._client.post(path, headers=self._headers, json=body))
        self._note(
            await batch(
                self._client, self._headers, object_requests(content), repo=f"{self._name}.git"
            )
        )

    async def _commit(self, content: bytes) -> None:
        value = {"path": "a.bin", "algo": "sha256", "oid": sha256(content), "size": len(content)}
        lines = [{"key": "header", "value": {"summary": "Add"}}, {"key": "lfsFile", "value": value}]
        self._note(
            await self._client.post(
                f"/api/{self._repo}/commit/main",
                headers=self._headers | NDJSON,
                content="\n".join(map(json.dumps, lines)),
            )
        )
        await self._ask_before_uploads(content)

    async def _look(self) -> None:
        """Read whatever tells of the content but the CAS."""
        kind, _, name = self._repo.partition("/")
        is_bucket = kind == "buckets"
        tree = f"/api/{self._repo}/tree" + ("" if is_bucket else "/main")
        await self._get(tree)
        resolve = f"/buckets/{name}/resolve/a.bin" if is_bucket else f"/{name}/resolve/main/a.bin"
        self._note(await self._client.head(resolve, headers=self._headers))
        part = await self._client.get(resolve, headers=self._headers | {"Range": "bytes=3-20"})
        assert (part.status_code, len(part.content)) == (206, 18)
        await self._get(f"/api/{self._repo}/storage")

    async def _read(self, cas: CasClient, file: str, chunk: str) -> None:
        await self._look()
        for path in (f"/v1/reconstructions/{file}", f"/v2/reconstructions/{file}"):
            self._note(await cas.get(path))
            self._note(await cas.get(path, Range="bytes=3-20"))
        await cas.download(file)
        query = await cas.get(f"/v1/chunks/default/{chunk}")
        xorbs = parse(query.content).xorbs
        told = [(to_text(each.hash), [node.length for node in each.chunks]) for each in xorbs]
        # The footer ends with the bytes of these xorbs as they are stored.
        self._lines.append(f"{query.status_code} {told} {query.content[-32:].hex(' ')}")


def packed_otherwise(chunks: Sequence[bytes]) -> tuple[list[Sequence[bytes]], bytes]:
    """Return two xorbs, the last chunks first, and the shard of the same file from them."""
    one, two = chunks[1:], chunks[:1]
    parts = [
        Segment(make_xorb(two)[0], len(two[0]), 0, 1),
        Segment(make_xorb(one)[0], len(b"".join(one)), 0, len(one)),
    ]
    file = shard_file(chunks, parts, sha256=sha256(b"".join(chunks)))
    return [one, two], make_shard([file], [shard_xorb(one), shard_xorb(two)])
