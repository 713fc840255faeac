"""Content for the loads: bytes made up as they are sent, and the requests that carry them."""

import base64
import hashlib
import http.client
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import Spoiled
from benchmarks.hubs import ServedHub

GIBIBYTE = 1 << 30
MEGABYTE = 1e6
OWNER = "ada"
NDJSON = "application/x-ndjson"

# A multiple of three, so that the base64 of one block can follow that of another.
_BLOCK = 3 << 20
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """So many bytes, never held as a whole: one block of noise, over and over."""

    size: int
    block: bytes

    def pieces(self) -> Iterator[bytes]:
        whole, rest = divmod(self.size, len(self.block))
        yield from itertools.repeat(self.block, whole)
        yield self.block[:rest]

    def encoded(self) -> Iterator[bytes]:
        """Yield the base64 of the whole, piece by piece."""
        whole, rest = divmod(self.size, len(self.block))
        yield from itertools.repeat(base64.b64encode(self.block), whole)
        yield base64.b64encode(self.block[:rest])

    @property
    def encoded_size(self) -> int:
        return (self.size + 2) // 3 * 4

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()


def new_bytes(size: int) -> Bytes:
    return Bytes(size=size, block=os.urandom(_BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    length: int
    pieces: Iterable[bytes]


def _line(key: str, value: Mapping[str, object]) -> bytes:
    return json.dumps({"key": key, "value": value}).encode() + b"\n"


def commit_body(files: Mapping[str, bytes]) -> bytes:
    lines = [_line("header", {"summary": "Add files", "description": ""})]
    for path, content in files.items():
        encoded = base64.b64encode(content).decode()
        lines.append(_line("file", {"content": encoded, "path": path, "encoding": "base64"}))
    return b"".join(lines)


def inline_body(path: str, content: Bytes) -> Body:
    """Return a commit of one file whose content travels in it, as the public client spells it."""
    head = _line("header", {"summary": f"Add {path}", "description": ""})
    before = head + b'{"key": "file", "value": {"content": "'
    after = b'", "path": "%b", "encoding": "base64"}}\n' % path.encode()
    return Body(
        length=len(before) + content.encoded_size + len(after),
        pieces=itertools.chain([before], content.encoded(), [after]),
    )


def pointer_body(path: str, *, sha256: str, size: int) -> bytes:
    """Return a commit of one large file that was uploaded before."""
    head = _line("header", {"summary": f"Add {path}", "description": ""})
    return head + _line("lfsFile", {"path": path, "algo": "sha256", "oid": sha256, "size": size})


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whose repositories the loads are about, on which hub."""

    hub: ServedHub
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def send(
        self, method: str, path: str, body: bytes | Body, *, media_type: str = "application/json"
    ) -> Any:
        """Send a body, and return the JSON of the answer; any but a good one spoils it all."""
        length, pieces = (
            (len(body), body) if isinstance(body, bytes) else (body.length, body.pieces)
        )
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.hub.port, timeout=_LONGEST_SECONDS
        )
        headers = self.headers | {"content-type": media_type, "content-length": str(length)}
        try:
            connection.request(method, path, body=pieces, headers=headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise Spoiled(f"{method} {path} answered {response.status}: {text[:300]!r}")
        return json.loads(text) if text else None

    def create_repo(self, name: str) -> None:
        self.send("POST", "/api/repos/create", json.dumps({"name": name}).encode())

    def commit(self, name: str, body: bytes | Body) -> None:
        path = f"/api/models/{OWNER}/{name}/commit/main"
        self.send("POST", path, body, media_type=NDJSON)

    def put_large(self, name: str, content: Bytes, *, sha256: str) -> None:
        """Send a large file as git's extension for them does, up to the commit that names it."""
        pointer = {"oid": sha256, "size": content.size}
        asked = {"operation": "upload", "transfers": ["basic"], "objects": [pointer]}
        batch = self.send(
            "POST", f"/{OWNER}/{name}.git/info/lfs/objects/batch", json.dumps(asked).encode()
        )
        href: str = batch["objects"][0]["actions"]["upload"]["href"]
        # Links begin with the hub's public address, which is not where it listens.
        path = "/" + href.split("/", 3)[3]
        body = Body(length=content.size, pieces=content.pieces())
        self.send("PUT", path, body, media_type="application/octet-stream")
