"""Registries and a plain client of theirs: images of layers that nobody has seen, pushed and pulled."""

import hashlib
import http.client
import json
import os
import shutil
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.content import Bytes, new_bytes
from benchmarks.figures import Spoiled
from benchmarks.hubs import ServedHub
from benchmarks.processes import fetch, free_port, running, wait_until_it_answers

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYERS = 20
IMAGE = "ada/tool"

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_PIECE = 1 << 20
# As many layers at once as container tools fetch.
_AT_ONCE = 4
_PATIENCE_SECONDS = 600
_CONFIGURATION = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{cache: {{blobdescriptor: inmemory}}, filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


def find_docker_registry() -> str | None:
    return shutil.which("docker-registry")


@contextmanager
def serving_with_docker_registry(
    program: str, folder: Path, *, core: int | None
) -> Iterator[ServedHub]:
    """Serve Docker's registry, without authorization, from a folder on the same disk."""
    folder.mkdir()
    port = free_port()
    configuration = folder / "config.yml"
    configuration.write_text(_CONFIGURATION.format(folder=folder / "data", port=port))
    command = [program, "serve", str(configuration)]
    with running(command, output=folder / "registry.log", core=core) as child:
        wait_until_it_answers(child, port, "/v2/")
        yield ServedHub(child=child, port=port)


def registry_token(hub: ServedHub, token: str) -> dict[str, str]:
    """Return the headers of requests with a token of the registry, as clients ask for it."""
    login = {"Authorization": f"Basic {b64encode(f'ada:{token}'.encode()).decode()}"}
    path = f"/api/registry/token?scope=repository:{IMAGE}:pull,push"
    status, body = fetch(hub.port, path, login)
    if status != 200:
        raise Spoiled(f"The hub gave no token of the registry, but {status}.")
    return {"Authorization": f"Bearer {json.loads(body)['token']}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchLayer:
    """Bytes that begin with some of their own, so that no registry has them."""

    head: bytes
    rest: Bytes

    @property
    def size(self) -> int:
        return len(self.head) + self.rest.size

    def pieces(self) -> Iterator[bytes]:
        yield self.head
        yield from self.rest.pieces()

    def digest(self) -> str:
        found = hashlib.sha256()
        for piece in self.pieces():
            found.update(piece)
        return f"sha256:{found.hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchImage:
    layers: Mapping[str, BenchLayer]
    tag: str

    @property
    def size(self) -> int:
        return sum(layer.size for layer in self.layers.values())

    def manifest(self) -> bytes:
        config = {"mediaType": _CONFIG, "digest": _digest(b"{}"), "size": 2}
        layers = [
            {"mediaType": _LAYER, "digest": digest, "size": layer.size}
            for digest, layer in self.layers.items()
        ]
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        return json.dumps(document).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def new_image(size: int, *, tag: str, layers: int = LAYERS) -> BenchImage:
    noise = new_bytes(size // layers)
    made = [BenchLayer(head=os.urandom(32), rest=noise) for _ in range(layers)]
    return BenchImage(layers={layer.digest(): layer for layer in made}, tag=tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryClient:
    """Pushes and pulls as container tools do: a streamed PATCH, and GETs of several layers at once."""

    server: ServedHub
    headers: Mapping[str, str] = field(default_factory=dict)

    def push(self, image: BenchImage) -> None:
        connection = self._connect()
        for digest, layer in image.layers.items():
            self._push_blob(connection, digest, layer.pieces(), layer.size)
        self._push_blob(connection, _digest(b"{}"), iter([b"{}"]), 2)
        path = f"/v2/{IMAGE}/manifests/{image.tag}"
        self._ask(connection, "PUT", path, image.manifest(), {"Content-Type": MANIFEST})
        connection.close()

    def _push_blob(
        self,
        connection: http.client.HTTPConnection,
        digest: str,
        pieces: Iterator[bytes],
        size: int,
    ) -> None:
        place = self._ask(connection, "POST", f"/v2/{IMAGE}/blobs/uploads/")
        sent = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        place = self._ask(connection, "PATCH", place, pieces, sent)
        mark = "&" if "?" in place else "?"
        self._ask(connection, "PUT", f"{place}{mark}digest={digest}", b"")

    def pull(self, image: BenchImage) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self.pull_blob, image.layers.items()))

    def pull_blob(self, named: tuple[str, BenchLayer]) -> None:
        digest, layer = named
        connection, piece, received = self._connect(), bytearray(_PIECE), 0
        connection.request("GET", f"/v2/{IMAGE}/blobs/{digest}", headers=dict(self.headers))
        response = connection.getresponse()
        while count := response.readinto(piece):
            received += count
        connection.close()
        if response.status != 200 or received != layer.size:
            raise Spoiled(f"A layer came with {response.status}, {received} of {layer.size} bytes.")

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=_PATIENCE_SECONDS)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | Iterator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Return the path of the `Location` of a good answer."""
        connection.request(method, path, body, headers={**self.headers, **(headers or {})})
        response = connection.getresponse()
        told = response.read()
        if response.status not in {201, 202}:
            raise Spoiled(f"{method} {path} was answered with {response.status}: {told[:300]!r}")
        place = urlsplit(response.headers.get("Location", ""))
        return place.path + (f"?{place.query}" if place.query else "")
