"""A hub that the stock client can reach, with a relay before it that counts what is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import OWNER, Account
from benchmarks.hubs import ServedHub, populate, serving
from benchmarks.process_trees import cpu_seconds_of_tree
from benchmarks.processes import free_port
from benchmarks.relay import Relay, relaying
from benchmarks.stock_client import StockClient
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageScene:
    bench: Workbench
    folder: Path
    settings: Settings
    hub: ServedHub
    account: Account
    client: StockClient

    def new_repo(self, name: str) -> str:
        self.account.create_repo(name)
        return f"{OWNER}/{name}"

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the server so far, with all its processes."""
        return cpu_seconds_of_tree(self.hub.child.id)


@contextmanager
def storage_scene(bench: Workbench) -> Iterator[StorageScene]:
    """Serve a new hub under the address at which it really is."""
    port = free_port()
    with _scene(bench, port=port, public_port=port) as scene:
        yield scene


@contextmanager
def relayed_storage_scene(bench: Workbench) -> Iterator[tuple[StorageScene, Relay]]:
    """Serve a new hub under the address of a relay, so that all that clients send is counted."""
    port = free_port()
    with (
        relaying(Relay(port)) as relay,
        _scene(bench, port=port, public_port=relay.port) as scene,
    ):
        yield scene, relay


@contextmanager
def _scene(bench: Workbench, *, port: int, public_port: int) -> Iterator[StorageScene]:
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    url = f"http://127.0.0.1:{public_port}"
    with serving(site, core=bench.cores.server, port=port, base_url=url) as hub:
        yield StorageScene(
            bench=bench,
            folder=site.folder,
            settings=site.settings(),
            hub=hub,
            account=Account(hub=hub, token=token),
            client=StockClient(endpoint=url, token=token, folder=site.folder),
        )
