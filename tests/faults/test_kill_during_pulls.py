"""A hub is killed while it pulls the images of jobs: each job runs once, on all of its image."""

import hashlib
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from faults.content_events import with_database
from faults.test_job_kills import OVER, _log_of, _rows, _until
from hublet.core.database import Database
from oci_images import CONFIG, MANIFEST, architecture, busybox_layer, layer
from processes import Place, serving, started
from runtime.supervisor.supervised_jobs import a_job

KILLS = 20
WEIGHTS = 1_500_000
PIECE = 1 << 16

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None or shutil.which("busybox") is None,
    reason="bubblewrap or busybox is not installed.",
)


@dataclass(slots=True)
class SlowRegistry:
    """A registry that sends layers piece by piece, and counts what it sent of them."""

    contents: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    sent: int = 0
    resumed: int = 0
    port: int = 0

    def add(
        self, content: bytes, media_type: str = "application/octet-stream"
    ) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.contents[digest] = (media_type, content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def add_image(self, tag: str, *layers: bytes) -> None:
        config = {"os": "linux", "architecture": architecture(), "config": {}}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add(json.dumps(config).encode(), CONFIG),
            "layers": [self.add(each) for each in layers],
        }
        found = self.add(json.dumps(manifest).encode(), MANIFEST)
        self.contents[tag] = self.contents[str(found["digest"])]


class _Handler(BaseHTTPRequestHandler):
    registry: SlowRegistry

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if self.path != "/v2/" and name not in self.registry.contents:
            self.send_error(404)
            return
        media_type, content = self.registry.contents.get(name, ("application/json", b"{}"))
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.registry.resumed += bool(start)
        self.send_response(206 if start else 200)
        if start:
            total = len(content)
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.send_header("Content-Type", media_type)
        self.send_header("Docker-Content-Digest", hashed(content))
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "GET":
            with suppress(OSError):
                self._send(content[start:], is_layer="/blobs/" in self.path)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, content: bytes, *, is_layer: bool) -> None:
        for place in range(0, len(content), PIECE):
            piece = content[place : place + PIECE]
            self.wfile.write(piece)
            if is_layer:
                self.registry.sent += len(piece)
                time.sleep(0.005)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def slow_registry() -> Iterator[SlowRegistry]:
    registry = SlowRegistry()
    handler = type("Handler", (_Handler,), {"registry": registry})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        registry.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()


def hashed(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True)
class PulledJob:
    id: str
    # What its program prints if the image is whole.
    digests: list[str]


def start_job(place: Place, registry: SlowRegistry, number: int, base: bytes) -> PulledJob:
    """Start a job whose image has two layers that no other has."""
    weights = [os.urandom(WEIGHTS) for _ in range(2)]
    layers = [layer({f"weights-{n}": (0o644, each)}) for n, each in enumerate(weights)]
    registry.add_image(f"v{number}", base, *layers)
    command = ["/bin/busybox", "sha256sum", "/weights-0", "/weights-1"]

    async def create(database: Database) -> str:
        image = f"127.0.0.1:{registry.port}/a/b:v{number}"
        return await a_job(database, dockerImage=image, command=command)

    job_id = with_database(place, create)
    return PulledJob(job_id, [hashlib.sha256(each).hexdigest() for each in weights])


def test_a_pull_that_was_killed_goes_on_and_no_half_layer_is_used(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    base = busybox_layer()
    jobs = list[PulledJob]()
    with slow_registry() as registry:
        variables = {
            "HUBLET_TEST_MODE": "true",
            "HUBLET_JOBS_RUNNER": "sandbox",
            "HUBLET_JOBS_CORES": "1000",
            "HUBLET_JOBS_MEMORY_BYTES": str(2**40),
            "HUBLET_JOBS_REGISTRIES": f"http://127.0.0.1:{registry.port}",
        }
        with serving(place, variables=variables):
            pass
        for number in range(KILLS):
            jobs.append(start_job(place, registry, number, base))
            limit = registry.sent + random.randrange(2 * WEIGHTS)
            # A worker pulls before its hub is ready, which is therefore not waited for.
            with started(place, "serve", "--port", "0", variables=variables) as process:
                while registry.sent < limit:
                    time.sleep(0.001)
                # Now and then while it unpacks, or afterwards.
                time.sleep(random.choice((0, 0, 0.01, 0.1, 0.5)))
                process.kill()
        with serving(place, variables=variables):
            _until(lambda: all(is_over(place, job) for job in jobs))

    assert _rows(place, "SELECT DISTINCT stage, message, attempt FROM jobs") == [
        ("COMPLETED", None, 1)
    ]
    assert registry.resumed
    for job in jobs:
        printed = [
            line.split()[1] for line in _log_of(place, job.id).splitlines() if "/weights" in line
        ]
        assert printed == job.digests
    assert list((place.data_dir / "jobs").rglob("*.partial")) == []


def is_over(place: Place, job: PulledJob) -> bool:
    return _rows(place, "SELECT stage FROM jobs WHERE id = $1", job.id)[0][0] in OVER
