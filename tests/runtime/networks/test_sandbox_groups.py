"""Network groups and the way outside, as jobs in the sandbox see them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.runtime.attempt_folder import read_status
from hublet.runtime.errors import CannotRun
from hublet.runtime.networks import name_resolution, namespaces
from hublet.runtime.networks.membership import Networks
from hublet.runtime.networks.records import NetworkPolicy
from hublet.runtime.records import BindMount, GroupMembership, Runner
from hublet.runtime.sandbox.runner import sandbox_runner
from runtime.attempts import HOST, Run, launch, outcome
from runtime.networks.machines import (
    METADATA,
    NEIGHBOUR,
    PRIVATE,
    PUBLIC,
    REACH,
    STRANGER,
    WORLD,
    Machine,
    a_policy,
    needs_networks,
    soon,
)

pytestmark = [needs_networks, pytest.mark.usefixtures("machine")]

# Answers with its own name on these ports, by TCP and UDP, until it is told to end.
SERVE = """
import socket, threading, time

def tcp(here):
    while True:
        there, _ = here.accept()
        there.sendall(socket.gethostname().encode())
        there.close()

def udp(here):
    while True:
        _, there = here.recvfrom(64)
        here.sendto(socket.gethostname().encode(), there)

for port in (80, 29500):
    open_ = socket.create_server(("", port))
    threading.Thread(target=tcp, args=(open_,), daemon=True).start()
    open_ = socket.socket(type=socket.SOCK_DGRAM)
    open_.bind(("", port))
    threading.Thread(target=udp, args=(open_,), daemon=True).start()
print("serving", flush=True)
time.sleep(60)
"""
# Says which addresses each name has, and who answers at each of them.
FIND = """
import socket, sys
for name in sys.argv[1:]:
    try:
        found = {answer[4][0] for answer in socket.getaddrinfo(name, 80, socket.AF_INET)}
    except socket.gaierror:
        print(name, "is unknown", flush=True)
        continue
    for address in sorted(found):
        said = []
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            for port in (80, 29500):
                with socket.socket(socket.AF_INET, kind) as there:
                    there.settimeout(5)
                    there.connect((address, port))
                    there.send(b"?")
                    said.append(there.recv(64).decode())
        print(name, address, *said, flush=True)
"""
# Says how many addresses a name has, each time that the number changes.
COUNT = """
import socket, sys, time
before = None
while True:
    try:
        count = len({answer[4][0] for answer in socket.getaddrinfo(sys.argv[1], 80)})
    except socket.gaierror:
        count = 0
    if count != before:
        print(count, flush=True)
        before = count
    time.sleep(0.01)
"""


def a_sandbox(data_dir: Path, policy: NetworkPolicy | None = None) -> Runner:
    networks = Networks(data_dir=data_dir, policy=policy or a_policy())
    return sandbox_runner(data_dir, image_map=HOST, network=False, networks=networks)


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[Runner]:
    runner = a_sandbox(tmp_path)
    yield runner
    for handle in await runner.handles():
        await runner.remove(handle)


def a_group(*aliases: str, key: str = "ada//train") -> GroupMembership:
    return GroupMembership(key=key, names=("all", *aliases))


async def a_member(runner: Runner, data_dir: Path, *aliases: str, **changes: Any) -> Run:
    """Somebody in the group who answers."""
    argv = ("python3", "-c", SERVE)
    run = await launch(runner, data_dir, *argv, **({"group": a_group(*aliases)} | changes))
    await run.prints("serving")
    return run


async def found(runner: Runner, data_dir: Path, group: GroupMembership, *names: str) -> list[str]:
    _, lines = await outcome(runner, data_dir, "python3", "-c", FIND, *names, group=group)
    return lines


async def test_jobs_of_a_group_find_each_other_by_hostname_and_alias(
    runner: Runner, tmp_path: Path
) -> None:
    one = await a_member(runner, tmp_path, "leader", "first")
    two = await a_member(runner, tmp_path, "worker")
    three = await a_member(runner, tmp_path, "worker")
    first, second, third = (
        f"10.213.0.{last} {' '.join([run.order.hostname] * 4)}"
        for last, run in zip((2, 3, 4), (one, two, three), strict=True)
    )

    lines = await found(
        runner,
        tmp_path,
        GroupMembership(key="ada//train", names=()),
        "all",
        "leader",
        "first",
        "worker",
    )

    assert lines == [
        *(f"all {each}" for each in (first, second, third)),
        f"leader {first}",
        f"first {first}",
        *(f"worker {each}" for each in (second, third)),
    ]


async def test_jobs_of_another_owner_or_resource_group_are_out_of_reach(
    runner: Runner, tmp_path: Path
) -> None:
    await a_member(runner, tmp_path, "leader")

    for key in ("grace//train", "ada/5f/train"):
        group = GroupMembership(key=key, names=("mine",))
        assert await found(runner, tmp_path, group, "all", "leader") == [
            "all is unknown",
            "leader is unknown",
        ]
        targets = ["10.213.0.2:80", "udp:10.213.0.2:29500"]
        _, lines = await outcome(runner, tmp_path, "python3", "-c", REACH, *targets, group=group)
        assert lines == [f"{target} is out of reach" for target in targets]


async def test_a_job_knows_its_own_address_by_its_own_name(runner: Runner, tmp_path: Path) -> None:
    await a_member(runner, tmp_path)

    _, lines = await outcome(runner, tmp_path, "hostname", "-i", group=a_group())

    assert lines == ["10.213.0.3"]


async def test_names_come_and_go_with_their_members(runner: Runner, tmp_path: Path) -> None:
    watcher = await launch(runner, tmp_path, "python3", "-c", COUNT, "worker", group=a_group())
    await watcher.prints("0")
    one = await a_member(runner, tmp_path, "worker")
    await watcher.prints("1")
    two = await a_member(runner, tmp_path, "worker")
    await watcher.prints("2")

    # Nobody asks how they fare: the runner itself sees them end.
    await runner.stop(one.handle, grace_seconds=0)
    await seen(watcher, "0", "1", "2", "1")
    await runner.stop(two.handle, grace_seconds=0)
    await seen(watcher, "0", "1", "2", "1", "0")


async def seen(watcher: Run, *lines: str) -> None:
    for _ in range(500):
        if watcher.lines() == list(lines):
            return
        await asyncio.sleep(0.02)
    assert watcher.lines() == list(lines)


async def test_a_group_goes_on_when_the_hub_is_another(
    runner: Runner, tmp_path: Path, machine: Machine
) -> None:
    watcher = await launch(runner, tmp_path, "python3", "-c", COUNT, "all", group=a_group())
    one = await a_member(runner, tmp_path, "worker")
    await watcher.prints("2")

    hub = a_sandbox(tmp_path)
    two = await a_member(hub, tmp_path, "worker")

    group = GroupMembership(key="ada//train", names=())
    assert await found(hub, tmp_path, group, "worker") == [
        f"worker 10.213.0.3 {' '.join([one.order.hostname] * 4)}",
        f"worker 10.213.0.4 {' '.join([two.order.hostname] * 4)}",
    ]
    for run in (one, two, watcher):
        await hub.remove(run.handle)
    assert await hub.handles() == []
    assert left_in(tmp_path) == ["lock"]
    assert machine.interfaces() == set()


def left_in(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "jobs" / "networks").iterdir())


async def test_who_was_killed_unseen_is_forgotten_when_the_hub_looks_around(
    runner: Runner, tmp_path: Path
) -> None:
    watcher = await launch(runner, tmp_path, "python3", "-c", COUNT, "worker", group=a_group())
    await watcher.prints("0")
    # By a hub that ends as soon as it runs.
    another = a_member(a_sandbox(tmp_path), tmp_path, "worker")
    one = await asyncio.to_thread(asyncio.run, another)
    await watcher.prints("1")
    status = read_status(Path(one.handle))
    assert status is not None

    os.kill(status["pid"], signal.SIGKILL)
    await asyncio.sleep(0.5)
    assert watcher.lines() == ["0", "1"]
    assert len(await runner.handles()) == 2

    await seen(watcher, "0", "1", "0")


async def test_an_attempt_that_cannot_begin_leaves_no_network(
    runner: Runner, tmp_path: Path
) -> None:
    with pytest.raises(CannotRun):
        await launch(runner, tmp_path, group=a_group())

    assert left_in(tmp_path) == ["lock"]


async def test_a_job_cannot_change_its_network_nor_pretend_to_be_another(
    runner: Runner, tmp_path: Path
) -> None:
    script = """
import socket, subprocess
for kind, protocol in ((socket.AF_PACKET, 3), (socket.AF_INET, 1)):
    try:
        socket.socket(kind, socket.SOCK_RAW, protocol)
        print("may send anything")
    except OSError:
        print("may not")
with socket.socket() as sender:
    sender.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
    sender.bind(("10.213.0.77", 0))
    sender.settimeout(2)
    try:
        sender.connect(("10.213.0.2", 80))
        print("is another")
    except OSError:
        print("may not")
for words in (["addr", "add", "10.213.0.9/24", "dev", "eth0"], ["link", "set", "eth0", "down"]):
    print(subprocess.run(["ip", *words], capture_output=True).returncode)
"""
    await a_member(runner, tmp_path)

    _, lines = await outcome(runner, tmp_path, "python3", "-c", script, group=a_group())

    assert lines == ["may not", "may not", "may not", "2", "2"]


async def test_without_a_group_there_is_nothing_but_loopback(
    runner: Runner, tmp_path: Path
) -> None:
    script = "import socket; print(*[name for _, name in socket.if_nameindex()])"

    _, lines = await outcome(runner, tmp_path, "python3", "-c", script)

    assert lines == ["lo"]
    assert not (tmp_path / "jobs" / "networks").exists()


@pytest.mark.parametrize("group", [None, a_group("leader")], ids=["alone", "in a group"])
async def test_with_outbound_a_job_reaches_the_world_and_the_hub_and_nothing_private(
    tmp_path: Path, machine: Machine, group: GroupMembership | None
) -> None:
    machine.listens("0.0.0.0", 8000, 22)
    for address in (WORLD, STRANGER, NEIGHBOUR, METADATA):
        machine.listens(address, 80, at=machine.world)
    hub = a_sandbox(tmp_path, a_policy(outbound=True, base_url=f"http://{PUBLIC}:8000"))
    opened = [f"{WORLD}:80", f"udp:{WORLD}:80", f"{PUBLIC}:8000"]
    closed = [f"{each}:80" for each in (STRANGER, NEIGHBOUR, METADATA)]
    closed += [f"{PUBLIC}:22", f"{PRIVATE}:8000", "127.0.0.1:8000", f"udp:{METADATA}:80"]

    argv = ("python3", "-c", REACH, *opened, *closed)
    _, lines = await outcome(hub, tmp_path, *argv, group=group)

    own = "10.213.0.2" if group else "10.213.255.254"
    assert lines == [
        f"{WORLD}:80 answers {PUBLIC}",
        f"udp:{WORLD}:80 answers {PUBLIC}",
        f"{PUBLIC}:8000 answers {own}",
        *(f"{target} is out of reach" for target in closed),
    ]
    soon(lambda: machine.interfaces() == set(), why="The cable stays.")
    assert machine.tables() == []


async def test_names_are_asked_of_the_nameservers_and_the_hub_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_resolution, "_resolve", lambda _: (IPv4Address(PUBLIC),))
    nameservers = (IPv4Address("10.0.0.53"),)
    policy = a_policy(outbound=True, base_url="http://hub.example", nameservers=nameservers)
    hub = a_sandbox(tmp_path, policy)

    script = "cat /etc/resolv.conf; getent ahostsv4 hub.example | head -n1"
    _, lines = await outcome(hub, tmp_path, "sh", "-c", script)

    assert lines == ["nameserver 10.0.0.53", f"{PUBLIC}      STREAM hub.example"]


def an_image(image: Path) -> None:
    """A root with links to a shell, and with one where its own way to find names would be."""
    for folder in ("etc", "usr"):
        (image / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (image / name).symlink_to(Path("/", name).readlink())
    (image / "etc" / "resolv.conf").symlink_to("../run/somewhere/resolv.conf")
    (image / "etc" / "passwd").write_text("")


async def test_an_image_may_have_no_names_of_its_own_or_links_in_their_place(
    tmp_path: Path,
) -> None:
    image = tmp_path / "image"
    an_image(image)
    runner = sandbox_runner(
        tmp_path,
        image_map=[ImageSource(pattern="*", target=str(image))],
        network=False,
        networks=Networks(data_dir=tmp_path, policy=a_policy()),
    )
    usr = BindMount(source=Path("/usr"), target="/usr", read_only=True)

    script = "ls /etc; cat /etc/resolv.conf; getent hosts all"
    _, lines = await outcome(runner, tmp_path, "sh", "-c", script, binds=(usr,), group=a_group())

    assert lines[:4] == ["hosts", "passwd", "resolv.conf", "options attempts:1"]
    assert lines[4].split() == ["10.213.0.2", "all"]


async def test_a_sandbox_says_whether_it_has_groups(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outward = a_sandbox(tmp_path, a_policy(outbound=True))
    shared = sandbox_runner(tmp_path, image_map=HOST, network=True)
    assert (await runner.probe()).network_groups
    assert (await outward.probe()).network_groups
    without = await shared.probe()
    assert (without.usable, without.network_groups) == (True, False)
    assert without.without_groups == (
        "Jobs share the network of the machine, because jobs.network is shared."
    )

    monkeypatch.setattr(namespaces, "_SEARCH_PATH", "/nowhere")

    needed = "it needs ip; install the package iproute2."
    closed = await runner.probe()
    assert (closed.usable, closed.network_groups) == (True, False)
    assert closed.without_groups == f"Networks for jobs cannot be made: {needed}"
    refused = await outward.probe()
    assert not refused.usable
    assert refused.sentence == (
        "jobs.network is outbound, but that does not work. "
        f"Networks for jobs cannot be made: {needed}"
    )
    with pytest.raises(CannotRun, match="There are no networks for jobs here: it needs ip"):
        await launch(runner, tmp_path, "true", group=a_group())
    with pytest.raises(CannotRun, match=r"jobs\.network is shared"):
        await launch(shared, tmp_path, "true", group=a_group())
