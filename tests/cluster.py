"""Cluster for tests: nodes as processes on one PostgreSQL, behind a balancer.

`HUBLET_TEST_NODES=2` lets `processes.serving`, and with it the acceptance tests on PostgreSQL, start
that many nodes instead of one. `HUBLET_TEST_STORE` names the store that they share; `s3` is an object
storage that the tests start themselves.
"""

import atexit
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks.processes import free_port

from balancer import Balancer, balancing
from object_storage import CREDENTIALS, ObjectStorage
from processes import HUBLET, READY_SECONDS, Place, Process, Server, started, wait_until

NODES_VARIABLE = "HUBLET_TEST_NODES"
STORE_VARIABLE = "HUBLET_TEST_STORE"
# The value of `store` for nodes that share one data folder.
ONE_FOLDER = "folder"
# That of the variable for an object storage of the tests' own.
OBJECT_STORAGE = "s3"

# Longer than the balancer takes to notice that a node is not ready any more.
DRAIN_SECONDS = "1"


@dataclass(slots=True, kw_only=True)
class Node:
    """One node: it can be stopped, killed and started again at the same port."""

    place: Place
    port: int
    arguments: Sequence[str]
    variables: Mapping[str, str]
    program: Sequence[str] = HUBLET
    process: Process | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> dict[str, str]:
        """Start it, and return what it prints when it is ready."""
        self.process = self._stack.enter_context(
            started(
                self.place,
                *self.arguments,
                *("--port", str(self.port)),
                variables=self.variables,
                program=self.program,
            )
        )
        return self.process.told()

    def stop(self) -> None:
        """Ask it to stop, and insist that it ends well."""
        self._stack.close()

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self._stack.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes behind a balancer; `server` is what `processes.serving` yields for one hub."""

    nodes: Sequence[Node]
    balancer: Balancer
    server: Server

    def wait_until_ready(self, count: int | None = None) -> None:
        """Wait until the balancer sends requests to so many nodes, or to all."""
        expected = len(self.nodes) if count is None else count
        wait_until(lambda: self.balancer.count_ready() == expected, seconds=READY_SECONDS)

    def restart_each(self) -> None:
        """Restart one node after the other, each when all are ready."""
        for node in self.nodes:
            self.wait_until_ready()
            node.stop()
            node.start()
        self.wait_until_ready()


def wanted_nodes() -> int:
    """Return how many nodes a hub on PostgreSQL has, by the environment of the tests."""
    return int(os.environ.get(NODES_VARIABLE, "1"))


def wanted_store(place: Place) -> str:
    """Return the store of the hub at a place; in an object storage each has a part of its own."""
    wanted = os.environ.get(STORE_VARIABLE, ONE_FOLDER)
    if wanted != OBJECT_STORAGE:
        return wanted
    return _object_storage().url(hashlib.sha256(str(place.folder).encode()).hexdigest()[:24])


def store_variables(store: str) -> dict[str, str]:
    """Return the settings of a process that uses a store; none for one folder."""
    return {} if store == ONE_FOLDER else {"HUBLET_STORAGE_URL": store, **CREDENTIALS}


@cache
def _object_storage() -> ObjectStorage:
    """Start the object storage of this process of tests, which ends with it."""
    folder = tempfile.TemporaryDirectory(prefix="hublet-s3-", ignore_cleanup_errors=True)
    server = ObjectStorage(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.stop)
    server.start()
    return server


@contextmanager
def cluster(
    place: Place,
    *flags: str,
    nodes: int = 2,
    store: str = ONE_FOLDER,
    variables: Mapping[str, str] | None = None,
    program: Sequence[str] = HUBLET,
    retries: bool = True,
) -> Iterator[Cluster]:
    """Run nodes of `hublet serve` on one PostgreSQL, ready when this yields.

    `store` is `ONE_FOLDER`, or the address of a store: then each node has a data folder of its own,
    but the first, which has that of the place.
    """
    assert place.database_url is not None, "A cluster needs PostgreSQL."
    with ExitStack() as stack:
        balancer = stack.enter_context(balancing(retries=retries))
        shared = {
            "HUBLET_BASE_URL": balancer.address,
            "HUBLET_SERVER_TRUSTED_PROXIES": "127.0.0.1,::1",
            **store_variables(store),
            **(variables or {}),
        }
        arguments = ("serve", "--json", *flags)
        members = [
            Node(
                place=place if store == ONE_FOLDER or not number else beside(place, number),
                port=free_port(),
                arguments=arguments,
                variables=shared,
                program=program,
            )
            for number in range(nodes)
        ]
        told: dict[str, str] = {}
        for node in members:
            stack.callback(node.stop)
            if node.place is not place:
                copy_keys(place, node.place)
            said = node.start()
            balancer.add(node.address)
            if "firstAdministrator" in said:
                told = said | json.loads(Path(said["firstAdministrator"]).read_text())
        process = members[0].process
        assert process is not None
        server = Server(
            process=process,
            address=balancer.address,
            user=told.get("user"),
            password=told.get("password"),
            token=told.get("token"),
        )
        running = Cluster(nodes=members, balancer=balancer, server=server)
        running.wait_until_ready()
        yield running


def beside(place: Place, number: int) -> Place:
    """Return the place of another node, whose data folder is its own."""
    folder = place.folder / f"node-{number}"
    folder.mkdir(exist_ok=True)
    return Place(folder=folder, database_url=place.database_url)


def copy_keys(place: Place, to: Place) -> None:
    """Give a node with a folder of its own the keys of the cluster."""
    to.data_dir.mkdir(mode=0o700, exist_ok=True)
    keys = to.data_dir / "secret.keys"
    keys.touch(mode=0o600)
    keys.write_bytes((place.data_dir / "secret.keys").read_bytes())
