"""Several nodes of one hub on one machine: each with a folder of its own and a share of a core.

A machine with two cores cannot run four servers at full speed. It can run four slow ones: with a
share of a core each, the others wait as machines would, and what they cost each other shows.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import obstore
from obstore.store import S3Store

from benchmarks.figures import Spoiled
from benchmarks.hubs import BASE_URL, UNLIMITED, ServedHub, Site
from benchmarks.processes import COMMANDS, Child, free_port, running, wait_until_it_answers
from benchmarks.webhook_scene import VARIABLES
from hublet.core.ids import new_object_id
from hublet.runtime.cgroups import groups_for, own_hierarchies

_READY_SECONDS = 60.0
_MEMORY_BYTES = 8 << 30
_KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "of-the-benchmarks-only"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A database and a bucket that nodes share."""

    site: Site
    storage_url: str

    @property
    def variables(self) -> dict[str, str]:
        return _KEYS | {"HUBLET_STORAGE_URL": self.storage_url}

    def node(self, number: int) -> Site:
        """Return the place of a node: a folder with the hub's keys and nothing else."""
        folder = self.site.folder / f"node-{number}"
        if not folder.exists():
            (folder / "data").mkdir(parents=True)
            shutil.copy(self.site.data_dir / "secret.keys", folder / "data" / "secret.keys")
        return replace(self.site, folder=folder)


@contextmanager
def object_storage(folder: Path) -> Iterator[str]:
    """Run SeaweedFS until the body ends; yield its address."""
    folder.mkdir()
    port = free_port()
    identity = (
        '{"identities": [{"name": "bench", "credentials": [{"accessKey": "%s", "secretKey": "%s"}],'
        ' "actions": ["Admin", "Read", "Write", "List"]}]}'
    )
    (folder / "s3.json").write_text(identity % tuple(_KEYS.values()))
    ports = [
        f"-{role}.port{protocol}={free_port()}"
        for role in ("master", "volume", "filer")
        for protocol in ("", ".grpc")
    ]
    command = [
        *(
            str(COMMANDS / "weed"),
            "server",
            f"-dir={folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
        ),
        *(*ports, "-master.volumeSizeLimitMB=64", "-volume.max=0", "-s3", "-s3.autoCreateBucket"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
        *(f"-s3.port={port}", f"-s3.port.grpc={free_port()}", f"-s3.config={folder / 's3.json'}"),
    ]
    with running(command, output=folder / "weed.log") as child:
        endpoint = f"http://127.0.0.1:{port}"
        _wait_for_bucket(child, endpoint)
        yield endpoint
        # It takes many seconds to stop by itself, and nothing of it is kept.
        child.process.kill()


def _wait_for_bucket(child: Child, endpoint: str) -> None:
    bucket = S3Store(
        "bench",
        endpoint=endpoint,
        region="us-east-1",
        access_key_id=_KEYS["AWS_ACCESS_KEY_ID"],
        secret_access_key=_KEYS["AWS_SECRET_ACCESS_KEY"],
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            obstore.put(bucket, "ready", b"yes")
        except obstore.exceptions.BaseError:
            if child.process.poll() is not None or time.monotonic() > deadline:
                raise Spoiled(f"SeaweedFS did not start and said: {child.last_words()}") from None
            time.sleep(0.1)
        else:
            return


def storage_url(endpoint: str) -> str:
    return f"s3://bench/{new_object_id()}?endpoint={endpoint}&region=us-east-1"


@contextmanager
def api_nodes(cluster: Cluster, count: int, *, share: float) -> Iterator[list[ServedHub]]:
    """Run so many nodes that serve, each with its share of a core."""
    with ExitStack() as stack:
        hubs = []
        for number in range(count):
            site, port = cluster.node(number), free_port()
            command = [
                *(str(COMMANDS / "hublet"), "serve", "--role", "api", "--port", str(port)),
                *("--base-url", BASE_URL, *site.flags),
            ]
            child = stack.enter_context(
                running(
                    command,
                    output=site.folder / "hub.log",
                    variables=cluster.variables | UNLIMITED,
                )
            )
            hubs.append(ServedHub(child=child, port=port))
        for hub in hubs:
            wait_until_it_answers(hub.child, hub.port, "/readyz")
        stack.enter_context(held_to(share, [hub.child for hub in hubs]))
        yield hubs


@contextmanager
def worker_nodes(cluster: Cluster, count: int) -> Iterator[list[Child]]:
    """Run so many workers; `held_to` gives them shares of a core once they are warm."""
    with ExitStack() as stack:
        workers = []
        for number in range(count):
            site = cluster.node(number)
            command = [str(COMMANDS / "hublet"), "worker", *site.flags]
            workers.append(
                stack.enter_context(
                    running(
                        command,
                        output=site.folder / "worker.log",
                        variables=cluster.variables | VARIABLES,
                    )
                )
            )
        yield workers


@contextmanager
def held_to(share: float, children: Sequence[Child]) -> Iterator[None]:
    """Give each process at most this share of a core, by a control group of its own."""
    hierarchies = [each for each in own_hierarchies() if "cpu" in each.controllers]
    if not hierarchies:
        raise Spoiled("Processes cannot be held to a share of a core: control groups are not ours.")
    made: list[Path] = []
    try:
        for child in children:
            name = f"hublet-bench-{child.id}"
            groups = groups_for(hierarchies, name=name, cores=share, memory_bytes=_MEMORY_BYTES)
            for folder, files in groups:
                made.append(Path(folder))
                made[-1].mkdir()
                for file, value in files:
                    with suppress(OSError):
                        (made[-1] / file).write_text(value)
                (made[-1] / "cgroup.procs").write_text(str(child.id))
        yield
    finally:
        for child in children:
            for hierarchy in hierarchies:
                with suppress(OSError):
                    (hierarchy.folder / "cgroup.procs").write_text(str(child.id))
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
