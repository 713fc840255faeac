"""Hub of the pytest plugin on several nodes: what a test does with `hub`, it does with a cluster."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cluster import Cluster, beside, cluster
from hublet.core import clock
from hublet.core.startup import open_hub
from hublet.testing.child import store
from hublet.testing.child.control import Control
from hublet.testing.child.hubs import RunningHub
from hublet.testing.child.serving import HubSwitch
from hublet.testing.errors import HubletTestingError
from hublet.testing.hub import Hub, call_hub
from hublet.testing.process import HubProcess
from processes import Place

# As the plugin sets them: mails are sent at once, and nothing waits for the requests of a test that is over.
_SETTINGS = {"HUBLET_MAIL_DELAY_SECONDS": "0", "HUBLET_SERVER_STOP_GRACE_SECONDS": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunningCluster(RunningHub):
    """The database of a cluster; its clock is moved on every node and in this process."""

    address: str

    def move_clock(self, by: timedelta) -> None:
        # The balancer sends it to each node.
        body = {"advanceSeconds": by.total_seconds()}
        call_hub("POST", f"{self.address}/api/test-mode/clock", body=body)
        clock.move(by)


class ClusterProcess(HubProcess):
    """Nodes where the plugin has one process."""

    def __init__(self, running: Cluster, place: Place) -> None:
        assert running.server.token is not None
        self.url, self.admin_token = running.server.address, running.server.token
        self.data_dir = place.data_dir
        self._nodes, self._place = running.nodes, place
        self._housekeeping: frozenset[str] | None = None
        self.command("settle", seconds=30)

    def command(self, name: str, **arguments: object) -> dict[str, Any]:
        reply = asyncio.run(self._command({"do": name, **arguments}))
        if "error" in reply:
            raise HubletTestingError(reply["error"])
        return reply

    async def _command(self, request: dict[str, object]) -> dict[str, Any]:
        async with open_hub(self._place.settings) as database:
            if self._housekeeping is None:
                async with database.read() as conn:
                    self._housekeeping = await store.list_kinds(conn)
            elsewhere: Any = None
            hub = _RunningCluster(
                app=elsewhere,
                worker=elsewhere,
                database=database,
                housekeeping=self._housekeeping,
                address=self.url,
            )
            return await Control(elsewhere, HubSwitch(), hub=hub).run(request)

    def log(self, since: int = 0) -> str:
        processes = [node.process for node in self._nodes if node.process is not None]
        return "".join(each.stderr.read_text() for each in processes)[since:]

    def log_size(self) -> int:
        return len(self.log())


@contextmanager
def cluster_hub(place: Place, *, nodes: int, store_url: str) -> Iterator[Hub]:
    """Run nodes in test mode, with the data of this place, which is empty."""
    # What Hub.mails reads is one folder.
    for number in range(1, nodes):
        data_dir = beside(place, number).data_dir
        data_dir.mkdir(mode=0o700)
        (data_dir / "mail").symlink_to(place.data_dir / "mail")
    place.data_dir.mkdir(mode=0o700)
    (place.data_dir / "mail").mkdir(mode=0o700)
    flags, settings = ("--test-mode",), _SETTINGS
    with cluster(place, *flags, nodes=nodes, store=store_url, variables=settings) as running:
        hub = Hub(ClusterProcess(running, place))
        yield hub
        hub.logout()
