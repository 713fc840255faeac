"""Push and pull of images against Docker's registry, and small manifests with authorization."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.content import GIBIBYTE, MEGABYTE
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ServedHub, populate, serving
from benchmarks.machine import tied_to
from benchmarks.processes import cpu_seconds, megabytes_of
from benchmarks.registry_scene import (
    IMAGE,
    LAYERS,
    MANIFEST,
    BenchImage,
    RegistryClient,
    find_docker_registry,
    new_image,
    registry_token,
    serving_with_docker_registry,
)
from benchmarks.rounds import LoadTarget, Round, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

# Each round leaves another image on the disk, in both.
_MOST_ROUNDS = 3
_CLIENTS = 50
_CONNECTIONS = 16
_PEER = "docker-registry"
_PEER_IS = "docker-registry of Debian, without authorization, on the same disk and core"
_AS_FAST = Goal(floor=1.0, more_is_better=True, of="ratio")
_MANIFESTS = Goal(floor=500, more_is_better=True, of="ours")
_MEMORY = Goal(floor=250, more_is_better=False, of="ours")
_INDEPENDENT = Goal(floor=1.2, more_is_better=False, of="ratio")


def measure(bench: Workbench) -> Iterator[Row]:
    """Megabytes per second of images pushed and pulled, memory, manifests per second."""
    program = find_docker_registry()
    if program is None:
        raise Spoiled("docker-registry is not installed, so there is nothing to hold ours against.")
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    core = bench.cores.server
    with (
        serving(site, core=core) as hub,
        serving_with_docker_registry(program, site.folder / "peer", core=core) as peer,
    ):
        ours = RegistryClient(server=hub, headers=registry_token(hub, token))
        yield from _rows(bench, (ours, RegistryClient(server=peer)))


def _rows(bench: Workbench, both: tuple[RegistryClient, RegistryClient]) -> Iterator[Row]:
    hub, peer = (client.server for client in both)
    size = int(GIBIBYTE * bench.share)
    rounds = min(bench.rounds, _MOST_ROUNDS)
    images = [new_image(size, tag=f"round-{number}") for number in range(rounds)]
    what = f"{size / MEGABYTE:,.0f} MB in {LAYERS} layers"
    with tied_to(bench.cores.load):
        yield from _speeds(f"push of {what}", both, images, RegistryClient.push)
        yield from _speeds(f"pull of {what}", both, images, RegistryClient.pull)
        yield _memory("registry: memory at the most after both", hub, peer)
        before = megabytes_of(hub.child.id)["VmHWM"]
        both[0].push(new_image(size, tag="one", layers=1))
        yield compare(
            f"registry: memory at the most after one layer of {size / MEGABYTE:,.0f} MB",
            ours=[megabytes_of(hub.child.id)["VmHWM"]],
            other=[before],
            other_is="before it",
            unit="MB",
            goal=_INDEPENDENT,
        )
        small = new_image(size // _CLIENTS, tag="small")
        for client in both:
            client.push(small)
        what = f"{_CLIENTS} clients at once, each {small.size / MEGABYTE:,.0f} MB"
        yield from _speeds(f"pull by {what}", both, [small] * rounds, _pull_by_many)
        yield _memory(f"registry: memory at the most after {_CLIENTS} clients", hub, peer)
    yield from _manifests(bench, both)


def _pull_by_many(client: RegistryClient, image: BenchImage) -> None:
    def pull(_: int) -> None:
        for layer in image.layers.items():
            client.pull_blob(layer)

    with ThreadPoolExecutor(_CLIENTS) as pool:
        list(pool.map(pull, range(_CLIENTS)))


def _speeds(
    subject: str,
    both: tuple[RegistryClient, RegistryClient],
    images: list[BenchImage],
    act: Callable[[RegistryClient, BenchImage], None],
) -> Iterator[Row]:
    """Yield the megabytes per second, by the clock and by processor time of the server."""
    many = _CLIENTS if act is _pull_by_many else 1
    clock: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]
    for number, image in enumerate(images):
        megabytes = image.size * many / MEGABYTE
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            server = both[which].server.child.id
            spent, start = cpu_seconds(server), time.perf_counter()
            act(both[which], image)
            clock[which].append(megabytes / (time.perf_counter() - start))
            processor[which].append(megabytes / max(cpu_seconds(server) - spent, 0.01))
    for name, taken in ((subject, clock), (f"{subject}, by processor time", processor)):
        yield compare(
            name,
            ours=taken[0],
            other=taken[1],
            other_is=_PEER_IS,
            unit="MB/s",
            goal=_AS_FAST if name is subject else None,
        )


def _memory(subject: str, hub: ServedHub, peer: ServedHub) -> Row:
    other = megabytes_of(peer.child.id)["VmHWM"]
    return Row(
        subject=subject,
        unit="MB",
        ours=megabytes_of(hub.child.id)["VmHWM"],
        goal=_MEMORY,
        note=f"{_PEER}: {other:.0f} MB",
    )


def _manifests(bench: Workbench, both: tuple[RegistryClient, RegistryClient]) -> Iterator[Row]:
    path = f"/v2/{IMAGE}/manifests/small"
    names = ("ours", _PEER)
    targets = [
        LoadTarget(
            name=name,
            process_id=client.server.child.id,
            port=client.server.port,
            request=request_bytes("GET", path, headers={**client.headers, "accept": MANIFEST}),
        )
        for name, client in zip(names, both, strict=True)
    ]
    taken = alternate(
        targets,
        connections=_CONNECTIONS,
        seconds=bench.seconds,
        rounds=bench.rounds,
        core=bench.cores.load,
    )
    subject = f"GET of a manifest, {_CONNECTIONS} connections, with authorization"
    yield _manifest_row(subject, taken, lambda each: each.rate, _MANIFESTS)
    by_processor = f"{subject}, by processor time"
    yield _manifest_row(by_processor, taken, lambda each: 1e6 / each.cpu_micros, None)


def _manifest_row(
    subject: str,
    taken: dict[str, list[Round]],
    figure: Callable[[Round], float],
    goal: Goal | None,
) -> Row:
    return compare(
        subject,
        ours=[figure(each) for each in taken["ours"]],
        other=[figure(each) for each in taken[_PEER]],
        other_is=_PEER_IS,
        unit="/s",
        goal=goal,
    )
