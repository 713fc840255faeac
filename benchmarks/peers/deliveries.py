"""The same deliveries by a peer: its own rows, its own worker, our sink."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Spoiled
from benchmarks.hubs import Engine, Site
from benchmarks.peers.environments import Peer, python_of
from benchmarks.processes import ROOT, clean_environment
from benchmarks.sink import Sink

_HERE = Path(__file__).parent
_LONGEST_SECONDS = 180.0

OUTBOUND_WEBHOOKS = Peer(
    name="django-outbound-webhooks",
    script=_HERE / "outbound_webhooks.py",
    requirements=("django-outbound-webhooks==0.4.0", "psycopg[binary]"),
)
PROCRASTINATE = Peer(
    name="procrastinate and aiohttp",
    script=_HERE / "procrastinate_aiohttp.py",
    requirements=("procrastinate==3.10.0", "aiohttp", "psycopg[binary]", "uvloop"),
)
# Who can be run on which engine, and how many events are enough to tell.
PEERS: dict[Engine, Sequence[tuple[Peer, int]]] = {
    "SQLite": ((OUTBOUND_WEBHOOKS, 4),),
    "PostgreSQL": ((OUTBOUND_WEBHOOKS, 4), (PROCRASTINATE, 40)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How fast prepared deliveries went, and what of a core that took in the sending process."""

    deliveries: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.deliveries / self.seconds

    @property
    def rate_by_cpu(self) -> float:
        return self.deliveries / self.cpu_seconds


def drain(peer: Peer, site: Site, sink: Sink, *, events: int, size: int, core: int | None) -> Drain:
    """Have a peer send so many events to every endpoint, from its own rows."""
    plan = {
        "database": site.database_url or str(site.folder / "peer.db"),
        "urls": sink.urls,
        "events": events,
        "bytes": size,
        "core": core,
    }
    before = sink.count()
    done = subprocess.run(
        [str(python_of(peer)), str(peer.script), json.dumps(plan)],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise Spoiled(f"{peer.name} ended with {done.returncode} and said: {last}")
    outcome = Drain(**json.loads(done.stdout.splitlines()[-1]))
    arrived = sink.count() - before
    if not arrived == outcome.deliveries == events * len(sink.urls):
        raise Spoiled(f"{peer.name} sent {arrived} of {events * len(sink.urls)} deliveries.")
    return outcome
