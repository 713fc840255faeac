"""Connections to what a job listens on: to the job itself, and to nothing else."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.gateway.dialer import Dialer
from hublet.gateway.errors import CannotJoinNetwork, NothingListens
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.runtime.attempt_processes import attach_point_of_container
from hublet.runtime.records import AttachPoint, Runner
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.sandbox.shim_runner import process_runner
from patience import SOON_SECONDS
from runtime.attempts import HOST, Run, a_runner, eventually, launch

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)
RUNNERS = ["process", pytest.param("sandbox", marks=needs_bubblewrap)]

# Listens at an address, prints its port, and says where it listens to whoever comes.
LISTEN = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], 0), family=family) as server:
    print("port", server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(sys.argv[1].encode())
"""


async def listening(runner: Runner, folder: Path, address: str) -> tuple[Run, AttachPoint, int]:
    run = await launch(runner, folder, "/usr/bin/python3", "-c", LISTEN, address)
    async with asyncio.timeout(SOON_SECONDS):
        while not any(line.startswith("port ") for line in run.lines()):
            await asyncio.sleep(0.01)
    attach_point = await runner.attach_point(run.handle)
    assert attach_point is not None
    return run, attach_point, int(run.lines()[-1].split()[1])


async def dial(attach_point: AttachPoint, port: int) -> socket.socket:
    dialer = Dialer()
    try:
        return await dialer.dial(attach_point, port)
    finally:
        dialer.close()


def text_of(path: str) -> str:
    return Path(path).read_text()


def networks_of_threads() -> set[Path]:
    return {(task / "ns/net").readlink() for task in Path("/proc/self/task").iterdir()}


async def received(connection: socket.socket) -> str:
    with connection:
        data = await asyncio.get_running_loop().sock_recv(connection, 100)
    return data.decode()


async def end(run: Run) -> None:
    await run.runner.stop(run.handle, grace_seconds=0)
    await run.ended()
    await run.runner.remove(run.handle)


@pytest.fixture
async def dialer() -> AsyncIterator[Dialer]:
    dialer = Dialer()
    yield dialer
    dialer.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
@pytest.mark.parametrize("name", RUNNERS)
async def test_a_job_is_reached_wherever_it_listens(
    tmp_path: Path, name: str, address: str
) -> None:
    run, attach_point, port = await listening(a_runner(name, tmp_path), tmp_path, address)

    assert await received(await dial(attach_point, port)) == address

    await end(run)


@pytest.mark.parametrize("name", RUNNERS)
async def test_the_way_in_is_as_the_runner_made_it(tmp_path: Path, name: str) -> None:
    run, attach_point, _ = await listening(a_runner(name, tmp_path), tmp_path, "127.0.0.1")

    assert attach_point.has_own_network is (name == "sandbox")
    assert attach_point.process.lives()
    status = text_of(f"/proc/{attach_point.process.pid}/status")
    assert f"Uid:\t{attach_point.user}\t" in status
    # In its own view the sandbox's first process is number one.
    seen_as = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1]
    assert (seen_as == "1") is (name == "sandbox")
    for group in attach_point.groups:
        assert str(attach_point.process.pid) in text_of(f"{group}/cgroup.procs").split()

    await run.runner.stop(run.handle, grace_seconds=0)
    await run.ended()
    assert await run.runner.attach_point(run.handle) is None
    await eventually(lambda: not attach_point.process.lives())
    with pytest.raises((NothingListens, CannotJoinNetwork)):
        await dial(attach_point, 1)
    await run.runner.remove(run.handle)


@pytest.mark.parametrize("name", RUNNERS)
async def test_what_others_on_the_machine_listen_on_is_never_reached(
    tmp_path: Path, name: str
) -> None:
    run, attach_point, _ = await listening(a_runner(name, tmp_path), tmp_path, "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        with pytest.raises(NothingListens):
            await dial(attach_point, port)
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.accept()

    await end(run)


@needs_bubblewrap
async def test_in_the_network_of_the_machine_only_the_jobs_own_ports_are_reached(
    tmp_path: Path,
) -> None:
    runner = sandbox_runner(tmp_path, image_map=HOST, network=True)
    run, attach_point, port = await listening(runner, tmp_path, "127.0.0.1")

    assert not attach_point.has_own_network
    assert await received(await dial(attach_point, port)) == "127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as ours, pytest.raises(NothingListens):
        await dial(attach_point, ours.getsockname()[1])

    await end(run)


async def test_a_child_that_went_away_from_its_parent_is_of_the_job_still(
    tmp_path: Path,
) -> None:
    script = 'setsid /usr/bin/python3 -c "$0" 127.0.0.1 & exec sleep 60'
    runner = process_runner(tmp_path)
    run = await launch(runner, tmp_path, "sh", "-c", script, LISTEN)
    async with asyncio.timeout(SOON_SECONDS):
        while not any(line.startswith("port ") for line in run.lines()):
            await asyncio.sleep(0.01)
    attach_point = await runner.attach_point(run.handle)
    assert attach_point is not None

    port = int(run.lines()[-1].split()[1])
    assert await received(await dial(attach_point, port)) == "127.0.0.1"
    assert await received(await dial(replace(attach_point, groups=()), port)) == "127.0.0.1"

    await end(run)


@needs_bubblewrap
async def test_a_hub_that_may_not_join_networks_has_a_helper(
    tmp_path: Path, dialer: Dialer
) -> None:
    run, attach_point, port = await listening(a_runner("sandbox", tmp_path), tmp_path, "::1")
    dialer.sockets = NamespaceSockets(_needs_helper=True)

    # More than the helper makes at once.
    for _ in range(20):
        assert await received(await dialer.dial(attach_point, port)) == "::1"
    with pytest.raises(NothingListens):
        await dialer.dial(attach_point, 1)

    await end(run)


@needs_bubblewrap
async def test_the_hub_itself_stays_in_its_own_network(tmp_path: Path, dialer: Dialer) -> None:
    run, attach_point, port = await listening(a_runner("sandbox", tmp_path), tmp_path, "127.0.0.1")
    before = networks_of_threads()
    connections = [await dialer.dial(attach_point, port) for _ in range(5)]

    assert networks_of_threads() == before
    assert len(before) == 1

    for connection in connections:
        connection.close()
    await end(run)


async def test_a_process_that_is_another_by_now_is_no_way_in(tmp_path: Path) -> None:
    run, attach_point, port = await listening(a_runner("process", tmp_path), tmp_path, "127.0.0.1")
    process = replace(attach_point.process, start=attach_point.process.start - 1)
    with pytest.raises(NothingListens):
        await dial(replace(attach_point, process=process), port)
    with pytest.raises(CannotJoinNetwork):
        await dial(replace(attach_point, process=process, has_own_network=True), port)

    await end(run)


def test_a_number_that_an_engine_elsewhere_tells_is_no_way_in() -> None:
    assert attach_point_of_container(os.getpid(), "f" * 64) is None
    assert attach_point_of_container(0, "f" * 64) is None
