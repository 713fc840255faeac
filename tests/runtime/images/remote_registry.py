"""A small remote registry on loopback, for pulls: it may want tokens, redirect, cut and lie."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from outgoing_servers import Request, Stranger, Talk, serving
from runtime.images.layouts import HERE, INDEX, MANIFEST

TOKEN = "a-token"


@dataclass(slots=True)
class RemoteRegistry:
    """Manifests and blobs of any repository; the switches say how it behaves."""

    stranger: Stranger | None = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    # Whoever pulls needs a token, which is given to everybody or to this login alone.
    wants_token: bool = False
    login: tuple[str, str] | None = None
    # Where blobs are redirected to.
    redirects_to: str | None = None
    # Bytes of each blob response after which the connection is cut; each is used once.
    cuts: list[int] = field(default_factory=list)
    # Responses to give first, whatever is asked for: status and headers.
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    # What is sent for a digest instead.
    lies: dict[str, bytes] = field(default_factory=dict)
    # Blob responses wait for it.
    gate: asyncio.Event | None = None

    @property
    def host(self) -> str:
        assert self.stranger is not None
        return f"127.0.0.1:{self.stranger.port}"

    @property
    def paths(self) -> list[str]:
        assert self.stranger is not None
        return [each.line.split(" ")[1] for each in self.stranger.requests]

    def requests_for(self, part: str) -> list[Request]:
        assert self.stranger is not None
        return [each for each in self.stranger.requests if part in each.line]

    def add_blob(self, content: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blobs[digest] = content
        return {"digest": digest, "size": len(content)}

    def add_image(
        self, tag: str, *layers: bytes, platform: dict[str, str] = HERE, **config: Any
    ) -> str:
        described = self.add_blob(json.dumps(platform | {"config": config}).encode())
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described,
            "layers": [self.add_blob(layer) for layer in layers],
        }
        return self.add_manifest(tag, manifest, MANIFEST)

    def add_index(self, tag: str, *entries: tuple[str, dict[str, str]]) -> str:
        manifests = [
            {
                "digest": digest,
                "size": len(self.manifests[digest][1]),
                "mediaType": MANIFEST,
                "platform": platform,
            }
            for digest, platform in entries
        ]
        return self.add_manifest(tag, {"schemaVersion": 2, "manifests": manifests}, INDEX)

    def add_manifest(self, tag: str, document: object, media_type: str) -> str:
        content = json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.manifests[tag] = self.manifests[digest] = (media_type, content)
        return digest

    async def behave(self, talk: Talk) -> None:
        while True:
            request = await talk.listen()
            method, target, _ = request.line.split(" ")
            path = urlsplit(target).path
            if self.failures:
                status, headers = self.failures.pop(0)
                await _answer(talk, status, b"", headers)
            elif path == "/token":
                await self._give_token(talk, request)
            elif self.wants_token and request.headers.get("authorization") != f"Bearer {TOKEN}":
                realm = f'Bearer realm="http://{self.host}/token",service="a registry"'
                await _answer(talk, 401, b"", {"WWW-Authenticate": realm})
            elif path == "/v2/":
                await _answer(talk, 200, b"{}", {})
            elif "/manifests/" in path:
                await self._give_manifest(talk, method, path.rpartition("/")[2])
            else:
                await self._give_blob(talk, request, path)

    async def _give_token(self, talk: Talk, request: Request) -> None:
        sent = request.headers.get("authorization", "").removeprefix("Basic ")
        if (
            self.login is not None
            and sent != base64.b64encode(":".join(self.login).encode()).decode()
        ):
            await _answer(talk, 401, b"{}", {})
            return
        scope = parse_qs(urlsplit(request.line.split(" ")[1]).query)["scope"][0]
        assert scope.startswith("repository:")
        assert scope.endswith(":pull")
        await _answer(talk, 200, json.dumps({"token": TOKEN, "expires_in": 300}).encode(), {})

    async def _give_manifest(self, talk: Talk, method: str, version: str) -> None:
        if version not in self.manifests:
            await _answer(talk, 404, b"{}", {})
            return
        media_type, content = self.manifests[version]
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        headers = {"Content-Type": media_type, "Docker-Content-Digest": digest}
        await _answer(talk, 200, self.lies.get(version, content), headers, head=method == "HEAD")

    async def _give_blob(self, talk: Talk, request: Request, path: str) -> None:
        digest = path.rpartition("/")[2]
        if self.redirects_to and path.startswith("/v2/"):
            location = f"{self.redirects_to}/elsewhere/{digest}?signed=a%2Fb"
            await _answer(talk, 307, b"", {"Location": location})
            return
        if digest not in self.blobs:
            await _answer(talk, 404, b"{}", {})
            return
        if self.gate is not None:
            await self.gate.wait()
        content = self.lies.get(digest, self.blobs[digest])
        start = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        headers, status = {}, 200
        if start:
            status = 206
            headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        cut = self.cuts.pop(0) if self.cuts else None
        await _answer(talk, status, content[start:], headers, cut=cut)


async def _answer(
    talk: Talk,
    status: int,
    body: bytes,
    headers: dict[str, str],
    *,
    head: bool = False,
    cut: int | None = None,
) -> None:
    fields = {"Content-Length": str(len(body))} | headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    await talk.say(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + (b"" if head else body[:cut]))
    if cut is not None:
        talk.reset()
        raise asyncio.CancelledError


@asynccontextmanager
async def remote_registry(**switches: Any) -> AsyncIterator[RemoteRegistry]:
    registry = RemoteRegistry(**switches)
    async with serving(registry.behave) as stranger:
        registry.stranger = stranger
        yield registry
