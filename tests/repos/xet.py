"""Uploads and downloads by Xet for tests, one line each."""

from collections.abc import Sequence
from typing import Any

import httpx2

from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import file_hash, to_text
from hublet.storage.xorbs import form_of, read_chunks
from people import Headers
from repos.content import sha256
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

CHUNKS = (b"the first chunk ", b"the second chunk ", b"the third chunk ")
CONTENT = b"".join(CHUNKS)
FILE = to_text(file_hash(nodes(CHUNKS)))
XORB_HASH, XORB = make_xorb(CHUNKS)
XORB_NAME = to_text(XORB_HASH)


def object_name(chunks: Sequence[bytes] = CHUNKS, scheme: int = 0) -> str:
    """Return the name of the object in which a xorb with these chunks is stored."""
    digest, data = make_xorb(chunks, scheme)
    return f"{to_text(digest)}-{form_of(data)}"


async def xet_token(
    client: httpx2.AsyncClient,
    headers: Headers,
    right: str = "write",
    *,
    repo: str = "models/ada/engine",
) -> httpx2.Response:
    end = "" if repo.startswith(("buckets", "containers")) else "/main"
    return await client.get(f"/api/{repo}/xet-{right}-token{end}", headers=headers)


class CasClient:
    """Speaks to the CAS of one repository with one access token."""

    def __init__(self, client: httpx2.AsyncClient, token: dict[str, Any]) -> None:
        self.client = client
        self.url = token["casUrl"]
        self.headers = {"Authorization": f"Bearer {token['accessToken']}"}

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(self.url + path, headers=self.headers | headers)

    async def post(self, path: str, content: Any = b"") -> httpx2.Response:
        return await self.client.post(self.url + path, content=content, headers=self.headers)

    async def upload_xorb(self, chunks: Sequence[bytes] = CHUNKS) -> httpx2.Response:
        digest, data = make_xorb(chunks)
        return await self.post(f"/v1/xorbs/default/{to_text(digest)}", data)

    async def register(self, shard: bytes, version: int = 1) -> httpx2.Response:
        return await self.post(f"/v{version}/shards", shard)

    async def upload(self, chunks: Sequence[bytes] = CHUNKS) -> str:
        """Upload a file of one xorb; return its hash."""
        uploaded = await self.upload_xorb(chunks)
        assert uploaded.status_code == 200, uploaded.text
        registered = await self.register(shard_of(chunks))
        assert registered.status_code == 200, registered.text
        return to_text(file_hash(nodes(chunks)))

    async def download(self, file: str, **headers: str) -> bytes:
        """Do what a client does with the second form of a reconstruction."""
        found = await self.get(f"/v2/reconstructions/{file}", **headers)
        assert found.status_code == 200, found.text
        return await read_terms(self.client, found.json())


async def cas_of(
    client: httpx2.AsyncClient,
    headers: Headers,
    right: str = "write",
    *,
    repo: str = "models/ada/engine",
) -> CasClient:
    response = await xet_token(client, headers, right, repo=repo)
    assert response.status_code == 200, response.text
    return CasClient(client, response.json())


def whole(chunks: Sequence[bytes] = CHUNKS) -> Segment:
    """Return the segment that has all chunks of their xorb."""
    return Segment(make_xorb(chunks)[0], len(b"".join(chunks)), 0, len(chunks))


def shard_of(chunks: Sequence[bytes] = CHUNKS, *, digest: str | None = None) -> bytes:
    """Return the shard of one file and its xorb, as the public client sends it to a repository."""
    claimed = sha256(b"".join(chunks)) if digest is None else digest
    return make_shard([shard_file(chunks, [whole(chunks)], sha256=claimed)], [shard_xorb(chunks)])


async def read_terms(client: httpx2.AsyncClient, found: dict[str, Any]) -> bytes:
    """Fetch each range by itself, and return the content of the terms, before the ends are cut."""

    chunks: dict[tuple[str, int], bytes] = {}
    for xorb, fetches in found["xorbs"].items():
        for fetch in fetches:
            for part in fetch["ranges"]:
                first, last = part["bytes"]["start"], part["bytes"]["end"]
                data = await client.get(fetch["url"], headers={"Range": f"bytes={first}-{last}"})
                assert data.status_code == 206, data.text
                for at, chunk in enumerate(
                    read_chunks(data.content), start=part["chunks"]["start"]
                ):
                    chunks[xorb, at] = chunk
    content = b"".join(
        chunks[term["hash"], at]
        for term in found["terms"]
        for at in range(term["range"]["start"], term["range"]["end"])
    )
    return content[found["offset_into_first_range"] :]
