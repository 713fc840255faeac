"""Growth: one, two and four nodes on one PostgreSQL and one object storage, and what each thing costs."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.content import NDJSON, OWNER, Account, commit_body
from benchmarks.database_costs import Costs, measured_costs
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ServedHub, opened, populate
from benchmarks.load import CONNECTION, NUMBER, LoadPlan, digits
from benchmarks.nodes import (
    Cluster,
    api_nodes,
    held_to,
    object_storage,
    storage_url,
    worker_nodes,
)
from benchmarks.process_trees import cpu_seconds_of_tree
from benchmarks.reaction_load import create_discussions, react
from benchmarks.rounds import apply_load, request_bytes
from benchmarks.sink import Sink, sinking
from benchmarks.webhook_scene import WEBHOOKS, Scene, create_scene, settings_of, until, warm_up
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

NODES = (1, 2, 4)
# Of a core, for each node: four of them, the database, the storage and the load share two cores.
_API_SHARE = 0.15
_WORKER_SHARE = 0.15
_CONNECTIONS = 6
# By each worker, in a round.
_DELIVERIES = 2_000
_REPO = f"node-0-{digits(0)}"
_QUESTION = b'{"title": "Speed", "description": "How fast?"}'
_EVENTS_PER_COMMIT = 20
_LONGEST_SECONDS = 180.0
_WARM_UP_SECONDS = 2.0
_EVENTS = 1_000
_WATCHERS = 3
_GOALS = {
    2: Goal(floor=1.7, aim=1.9, more_is_better=True, of="ratio"),
    4: Goal(floor=3.0, aim=3.6, more_is_better=True, of="ratio"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """So many things done in so many seconds, with what one of them cost."""

    count: int
    seconds: float
    node_seconds: float
    database: Costs

    @property
    def rate(self) -> float:
        return self.count / self.seconds


def measure(bench: Workbench) -> Iterator[Row]:
    """1, 2 and 4 nodes with folders of their own: requests, commits and deliveries, each node with a share of a core."""
    with object_storage(bench.folder / "objects") as endpoint:
        yield from _requests(bench, endpoint)
        yield from _deliveries(bench, endpoint)
        yield from _follow_ups(bench, endpoint)


def _rows(subject: str, runs: dict[int, list[Run]], *, what: str, share: float) -> Iterator[Row]:
    one = runs[1]
    for nodes, several in runs.items():
        row = Row(
            subject=f"scale: {subject}, {nodes} {what}",
            unit="/s",
            ours=median(each.rate for each in several),
            note=f"each with {share} of a core; {_costs_of(several, nodes=nodes, share=share)}",
        )
        if nodes > 1:
            row = replace(
                row,
                other=median(each.rate for each in one),
                other_is=f"one of the {what}",
                ratios=tuple(
                    many.rate / single.rate for many, single in zip(several, one, strict=True)
                ),
                goal=_GOALS[nodes],
            )
        yield row


def _costs_of(runs: Sequence[Run], *, nodes: int, share: float) -> str:
    def of_one(spent: Sequence[float]) -> float:
        return median(each / run.count for each, run in zip(spent, runs, strict=True))

    node = of_one([run.node_seconds for run in runs]) * 1e6
    database = of_one([run.database.cpu_seconds for run in runs]) * 1e6
    wal = of_one([run.database.wal_bytes for run in runs])
    # Nodes that wait for each other, or for a machine that is full, do not get to use their share.
    used = median(run.node_seconds / (run.seconds * nodes * share) for run in runs)
    return (
        f"one takes {node:,.0f} µs of a node, {database:,.0f} µs and {wal:,.0f} bytes of the database; "
        f"the nodes used {used:.0%} of their share"
    )


def _requests(bench: Workbench, endpoint: str) -> Iterator[Row]:
    cluster = Cluster(site=bench.site("PostgreSQL"), storage_url=storage_url(endpoint))
    token = run_loop(populate(cluster.site.settings(storage__url=cluster.storage_url)))
    with api_nodes(cluster, 1, share=1.0) as [hub]:
        account = Account(hub=hub, token=token)
        for node in range(max(NODES)):
            for connection in range(_CONNECTIONS):
                name = f"node-{node}-{digits(connection)}"
                account.create_repo(name)
                account.send("POST", f"/api/models/{OWNER}/{name}/discussions", _QUESTION)
        account.commit(_REPO, commit_body({"counter.txt": b"123456"}))
    for subject, load in _loads(account).items():
        runs = {count: list[Run]() for count in NODES}
        for count in NODES:
            with api_nodes(cluster, count, share=_API_SHARE) as hubs:
                load.run(hubs, cluster, seconds=_WARM_UP_SECONDS * load.patience)
                runs[count] = [
                    load.run(hubs, cluster, seconds=bench.seconds * load.patience)
                    for _ in range(bench.rounds)
                ]
        yield from _rows(subject, runs, what="API nodes", share=_API_SHARE)


def _loads(account: Account) -> dict[str, "_Load"]:
    body = commit_body({"counter.txt": b"123456"}).replace(b"MTIzNDU2", NUMBER.encode())
    file = f"/{OWNER}/{_REPO}/resolve/main/counter.txt"
    return {
        "whoami": _Load(
            "whoami", [request_bytes("GET", "/api/whoami-v2", headers=account.headers)]
        ),
        "small file of git": _Load(
            "small file of git", [request_bytes("GET", file, headers=account.headers)]
        ),
        "comment": _Load(
            "comment",
            # In discussions of their own: those who comment on the same one take turns.
            [
                request_bytes(
                    "POST",
                    f"/api/models/{OWNER}/node-{node}-{CONNECTION}/discussions/1/comment",
                    headers=account.headers,
                    body=b'{"comment": "Fast enough."}',
                )
                for node in range(max(NODES))
            ],
        ),
        "commit": _Load(
            "commit",
            [
                request_bytes(
                    "POST",
                    f"/api/models/{OWNER}/node-{node}-{CONNECTION}/commit/main",
                    headers=account.headers,
                    body=body,
                    media_type=NDJSON,
                )
                for node in range(max(NODES))
            ],
            # Six at once take a node with its share of a core more than a second.
            patience=2.0,
        ),
    }


class _Load:
    """The same request to all nodes at the same time, or one of its own for each."""

    def __init__(self, name: str, requests: Sequence[bytes], *, patience: float = 1.0) -> None:
        # How much longer than others it is measured.
        self.patience = patience
        self._name = name
        self._requests = requests
        self._made = 0

    def run(self, hubs: Sequence[ServedHub], cluster: Cluster, *, seconds: float) -> Run:
        plans = [
            LoadPlan(
                port=hub.port,
                request=self._requests[number % len(self._requests)],
                connections=_CONNECTIONS,
                seconds=seconds,
                numbered=CONNECTION.encode() in self._requests[0],
                first_number=self._made,
            )
            for number, hub in enumerate(hubs)
        ]
        before = sum(cpu_seconds_of_tree(hub.child.id) for hub in hubs)
        with measured_costs(cluster.site.database_url) as costs, ThreadPoolExecutor() as threads:
            outcomes = list(threads.map(lambda plan: apply_load(plan, name=self._name), plans))
        count = sum(each.answers for each in outcomes)
        self._made += count + _CONNECTIONS
        return Run(
            count=count,
            seconds=max(each.seconds for each in outcomes),
            node_seconds=sum(cpu_seconds_of_tree(hub.child.id) for hub in hubs) - before,
            database=costs(),
        )


def _deliveries(bench: Workbench, endpoint: str) -> Iterator[Row]:
    events = max(2, round(_DELIVERIES * bench.share / WEBHOOKS))
    cluster = Cluster(site=bench.site("PostgreSQL"), storage_url=storage_url(endpoint))
    with sinking(bench.folder, endpoints=WEBHOOKS) as sink:
        runs = run_loop(_drains(bench, sink, cluster, events=events))
    yield from _rows("webhook deliveries", runs, what="workers", share=_WORKER_SHARE)


async def _drains(
    bench: Workbench, sink: Sink, cluster: Cluster, *, events: int
) -> dict[int, list[Run]]:
    """Let one, two and four workers deliver, in turn; each as many as the others."""
    settings = settings_of(cluster.site)
    settings = replace(settings, storage=replace(settings.storage, url=cluster.storage_url))
    runs = {count: list[Run]() for count in NODES}
    async with opened(settings) as database:
        scene = await create_scene(database, sink.urls)
        for number in range(bench.rounds):
            for count in NODES if number % 2 == 0 else NODES[::-1]:
                with worker_nodes(cluster, count) as workers:
                    ids = [worker.id for worker in workers]
                    # At full speed: what a worker does once, such as to connect to each of the
                    # receivers eight times, costs as much as a thousand deliveries.
                    await warm_up(scene, sink)
                    await _drain(scene, ids, sink, cluster, events=count * events)
                    with held_to(_WORKER_SHARE, workers):
                        run = await _drain(scene, ids, sink, cluster, events=count * events)
                runs[count].append(run)
    return runs


async def _drain(
    scene: Scene, workers: Sequence[int], sink: Sink, cluster: Cluster, *, events: int
) -> Run:
    expected = events * scene.webhooks
    before = sum(map(cpu_seconds_of_tree, workers))
    start = time.perf_counter()
    with measured_costs(cluster.site.database_url) as costs:
        # While they are recorded the first are delivered, as in a hub that is busy.
        for done in range(0, events, _EVENTS_PER_COMMIT):
            await scene.record(min(_EVENTS_PER_COMMIT, events - done))
        await until(lambda: sink.count() >= expected, seconds=_LONGEST_SECONDS)
        await scene.all_written(seconds=_LONGEST_SECONDS)
    seconds = time.perf_counter() - start
    ids = {each.id for each in sink.arrivals()}
    sink.forget()
    if len(ids) != expected:
        raise Spoiled(f"{len(ids)} different deliveries arrived of {expected}.")
    return Run(
        count=expected,
        seconds=seconds,
        node_seconds=sum(map(cpu_seconds_of_tree, workers)) - before,
        database=costs(),
    )


def _follow_ups(bench: Workbench, endpoint: str) -> Iterator[Row]:
    """What an event costs a worker and the database: for the capacity model, so not as a rate."""
    cluster = Cluster(site=bench.site("PostgreSQL"), storage_url=storage_url(endpoint))
    events = max(20, round(_EVENTS * bench.share))
    costs = run_loop(_reactions(cluster, rounds=bench.rounds, events=events))
    for subject, micros in costs.items():
        node, database, wal = (median(each) for each in zip(*micros, strict=True))
        yield Row(
            subject=f"scale: {subject}",
            unit="µs",
            ours=node,
            note=f"of a worker; {database:,.0f} µs and {wal:,.0f} bytes of the database",
        )


async def _reactions(
    cluster: Cluster, *, rounds: int, events: int
) -> dict[str, list[tuple[float, float, float]]]:
    """Measure events that nobody watches, and those that some do: the difference is their notifications."""
    settings = settings_of(cluster.site)
    settings = replace(settings, storage=replace(settings.storage, url=cluster.storage_url))
    taken: dict[str, list[tuple[float, float, float]]] = {"a reaction": [], "a notification": []}
    async with opened(settings) as database:
        scenes = {
            watchers: await create_discussions(database, watchers=watchers)
            for watchers in (0, _WATCHERS)
        }
        with worker_nodes(cluster, 1) as [worker]:
            for number in range(-1, rounds):
                of_one: dict[int, tuple[float, ...]] = {}
                for watchers, talks in scenes.items():
                    node, spent = await react(
                        database, cluster, talks, events=events, worker=worker.id
                    )
                    whole = (node * 1e6, spent.cpu_seconds * 1e6, float(spent.wal_bytes))
                    of_one[watchers] = tuple(each / events for each in whole)
                # The first round warms up.
                if number >= 0:
                    bare, watched = of_one[0], of_one[_WATCHERS]
                    taken["a reaction"].append((bare[0], bare[1], bare[2]))
                    more = [
                        (much - little) / _WATCHERS
                        for much, little in zip(watched, bare, strict=True)
                    ]
                    taken["a notification"].append((more[0], more[1], more[2]))
    return taken
