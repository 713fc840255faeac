"""The docker runner on a real engine, where one can be started; else the reason is told."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from docker_engine import IMAGE
from hublet.jobs.records import Observation, Phase
from hublet.runtime.docker import containers
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount, GroupMembership, LaunchOrder
from patience import SOON_SECONDS

aiodocker = pytest.importorskip("aiodocker", reason="hublet[docker] is not installed")

from hublet.runtime.docker.runner import DockerRunner  # noqa: E402 - only where aiodocker is


@pytest.fixture
async def runner(docker_engine: str, tmp_path: Path) -> AsyncIterator[DockerRunner]:
    runner = a_runner(docker_engine, tmp_path)
    yield runner
    for handle in await runner.handles():
        await runner.remove(handle)
    await runner.close()


def a_runner(engine: str, folder: Path) -> DockerRunner:
    return DockerRunner(engine=aiodocker.Docker(url=engine), hub=str(folder), data_dir=folder)


def an_order(folder: Path, script: str, *, number: int = 1) -> LaunchOrder:
    """An attempt at a script; name only what the test is about."""
    return LaunchOrder(
        job_id=f"{abs(hash(folder)):024x}"[:24],
        number=number,
        folder=folder / f"attempt-{number}",
        log=folder / "log",
        image=IMAGE,
        argv=("sh", "-c", script),
        environment={"GREETING": "hello"},
        cores=1,
        memory_bytes=64 * 2**20,
        timeout_seconds=60,
        grace_seconds=1,
        log_bytes=2**20,
        hostname="job",
    )


async def ended(runner: DockerRunner, handle: str) -> Observation:
    async with asyncio.timeout(SOON_SECONDS):
        while (seen := await runner.inspect(handle)).phase is not Phase.exited:
            await asyncio.sleep(0.05)
    return seen


async def prints(order: LaunchOrder, line: str) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while not order.log.exists() or line not in printed(order):
            await asyncio.sleep(0.05)


def printed(order: LaunchOrder) -> list[str]:
    return [line.partition(" ")[2] for line in order.log.read_text().splitlines()]


async def test_the_engine_answers(runner: DockerRunner) -> None:
    ability = await runner.probe()

    assert (ability.usable, ability.limits, ability.volumes) == (True, True, True)


async def test_an_engine_that_is_not_there_is_no_use(tmp_path: Path) -> None:
    engine = aiodocker.Docker(url=f"unix://{tmp_path}/none")
    runner = DockerRunner(engine=engine, hub="x", data_dir=tmp_path)

    ability = await runner.probe()
    seen = await runner.inspect("any")
    await runner.close()

    assert not ability.usable
    assert ability.sentence.startswith("The Docker engine does not answer: ")
    assert seen.phase is Phase.unknown


async def test_an_attempt_prints_and_ends(runner: DockerRunner, tmp_path: Path) -> None:
    script = "echo $GREETING from $(hostname); echo wrong >&2; printf '\\377 end'; exit 3"
    order = an_order(tmp_path, script)

    handle = await runner.launch(order)
    again = await runner.launch(order)
    seen = await ended(runner, handle)

    assert again == handle
    assert (seen.exit_code, seen.stopped, seen.timed_out, seen.reason) == (3, False, False, None)
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.started_at <= seen.ended_at
    marker, *lines = printed(order)
    assert marker.startswith("===== Job started at ")
    assert sorted(lines) == ["hello from job", "wrong", "\ufffd end"]
    assert await runner.handles() == [handle]
    await runner.remove(handle)
    await runner.remove(handle)
    assert await runner.handles() == []
    assert (await runner.inspect(handle)).phase is Phase.gone


def asks_for(*names: str, tries: int) -> str:
    """Return a script that hears from each name, which may not listen yet."""
    return f"""
        for name in {" ".join(names)}; do
            found=
            for try in $(seq {tries}); do
                [ "$(nc -w 2 $name 7000 </dev/null)" = hello ] && found=1 && break
                sleep 0.2
            done
            [ $found ] || exit 1
        done
    """


async def test_members_of_a_group_find_each_other_by_every_name(
    runner: DockerRunner, tmp_path: Path
) -> None:
    group = GroupMembership(key="ada//train", names=("g1-train", "a1-worker"))
    serving = "while true; do echo hello | nc -l -p 7000; done"
    member = replace(an_order(tmp_path / "one", serving), group=group)
    asking = replace(
        an_order(tmp_path / "two", asks_for(*group.names, tries=20)),
        group=GroupMembership(key="ada//train", names=()),
    )
    stranger = replace(
        an_order(tmp_path / "three", asks_for(*group.names, tries=1)),
        group=GroupMembership(key="x", names=()),
    )
    for order in (member, asking, stranger):
        order.folder.mkdir(parents=True, exist_ok=True)

    await runner.launch(member)
    seen = [await ended(runner, await runner.launch(order)) for order in (asking, stranger)]

    assert [each.exit_code for each in seen] == [0, 1]
    for handle in await runner.handles():
        await runner.remove(handle)
    networks = await runner.engine.networks.list()
    assert not [each for each in networks if each["Name"].startswith("hublet-")]


@pytest.fixture
async def a_service(docker_engine: str) -> AsyncIterator[int]:
    """The port of something that answers at every address of this machine."""

    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    assert docker_engine
    server = await asyncio.start_server(greet, "0.0.0.0", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def gateway_of(runner: DockerRunner, name: str) -> str:
    shown = await (await runner.engine.networks.get(name)).show()
    return str(shown["IPAM"]["Config"][0]["Gateway"])


def reaches(address: str, port: int) -> str:
    return f'[ "$(nc -w 3 {address} {port} </dev/null)" = hello ]'


async def test_a_group_without_a_way_out_does_not_reach_this_machine(
    runner: DockerRunner, a_service: int, tmp_path: Path
) -> None:
    waiting = replace(
        an_order(tmp_path / "one", "sleep 60"), group=GroupMembership(key="k", names=())
    )
    group = containers.group_of(waiting, hub=runner.hub)
    assert group is not None
    await runner.launch(waiting)
    script = reaches(await gateway_of(runner, group), a_service)

    asking = replace(an_order(tmp_path / "two", script), group=GroupMembership(key="k", names=()))
    seen = await ended(runner, await runner.launch(asking))

    assert seen.exit_code == 1
    assert await is_reached_otherwise(runner, a_service, tmp_path)


async def is_reached_otherwise(runner: DockerRunner, port: int, folder: Path) -> bool:
    """Tell whether this engine lets a container on another closed network reach the machine."""
    name = f"hublet-trial-{folder.name}"
    made = await runner.engine.networks.create(
        {"Name": name, "Driver": "bridge", "Internal": True, "Labels": {}}
    )
    script = reaches(await gateway_of(runner, name), port)
    config = {
        "Image": IMAGE,
        "Cmd": ["sh", "-c", script],
        "HostConfig": {"NetworkMode": name},
    }
    container = await runner.engine.containers.run(config, name=name)
    try:
        return bool((await container.wait())["StatusCode"] == 0)
    finally:
        await container.delete(force=True)
        await made.delete()


async def test_an_attempt_that_ended_is_not_started_again(
    runner: DockerRunner, tmp_path: Path
) -> None:
    order = an_order(tmp_path, "echo once")
    handle = await runner.launch(order)
    await ended(runner, handle)

    await runner.launch(order)
    await ended(runner, handle)

    assert printed(order)[1:] == ["once"]


async def test_stopping_is_asked_for_and_then_enforced(
    runner: DockerRunner, tmp_path: Path
) -> None:
    order = an_order(tmp_path, "trap '' TERM; while true; do sleep 0.1; done")
    handle = await runner.launch(order)

    await runner.stop(handle, grace_seconds=1)
    seen = await ended(runner, handle)

    assert (seen.stopped, seen.timed_out, seen.exit_code) == (True, False, 137)


async def test_a_job_is_told_once_however_often_somebody_asks(
    runner: DockerRunner, tmp_path: Path
) -> None:
    script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done"
    order = an_order(tmp_path, script)
    handle = await runner.launch(order)
    await prints(order, "ready")
    for _ in range(5):
        await runner.stop(handle, grace_seconds=30)
        await asyncio.sleep(0.2)
    await prints(order, "told")

    assert printed(order).count("told") == 1
    # Somebody has lost patience.
    await runner.stop(handle, grace_seconds=0)
    assert (await ended(runner, handle)).exit_code == 128 + signal.SIGKILL


async def test_a_variable_that_is_too_long_is_a_file(runner: DockerRunner, tmp_path: Path) -> None:
    script = 'wc -c < "$PAYLOAD_FILE"; echo "$GREETING"'
    order = an_order(tmp_path, script)
    order = replace(order, environment=order.environment | {"PAYLOAD": "x" * 200_000})
    await ended(runner, await runner.launch(order))

    assert printed(order)[-2:] == ["200000", "hello"]


async def test_the_deadline_is_kept(runner: DockerRunner, tmp_path: Path) -> None:
    order = replace(an_order(tmp_path, "echo begun; sleep 50"), timeout_seconds=5)

    seen = await ended(runner, await runner.launch(order))

    assert (seen.timed_out, seen.stopped) == (True, False)
    assert printed(order)[1:] == ["begun"]


async def test_too_much_memory_ends_an_attempt(runner: DockerRunner, tmp_path: Path) -> None:
    order = an_order(tmp_path, "x=x; while true; do x=$x$x; done")

    seen = await ended(runner, await runner.launch(order))

    assert seen.out_of_memory
    assert seen.exit_code != 0


async def test_volumes_are_mounted_and_read_only_ones_stay_as_they_are(
    runner: DockerRunner, tmp_path: Path
) -> None:
    for name in ("data", "box"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("1")
    script = "cat /data/a; echo; echo 2 > /data/a; echo 2 > /box/a"
    binds = (
        BindMount(source=tmp_path / "data", target="/data", read_only=True),
        BindMount(source=tmp_path / "box", target="/box", read_only=False),
    )
    order = replace(an_order(tmp_path, script), binds=binds)

    await ended(runner, await runner.launch(order))

    assert "1" in printed(order)
    assert (tmp_path / "data" / "a").read_text() == "1"
    assert (tmp_path / "box" / "a").read_text() == "2\n"


async def test_a_hub_that_comes_back_loses_no_line_and_writes_none_twice(
    docker_engine: str, runner: DockerRunner, tmp_path: Path
) -> None:
    script = "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); sleep 0.01; done"
    order = an_order(tmp_path, script)
    first = a_runner(docker_engine, tmp_path)
    handle = await first.launch(order)
    async with asyncio.timeout(SOON_SECONDS):
        while not order.log.exists() or order.log.read_text().count("\n") < 50:
            await asyncio.sleep(0.02)
    await first.close()

    seen = await ended(runner, handle)

    assert seen.exit_code == 0
    assert printed(order)[1:] == [f"line {number}" for number in range(300)]
    assert (await runner.inspect(handle)).phase is Phase.exited


async def test_a_second_attempt_goes_on_in_the_same_log(
    runner: DockerRunner, tmp_path: Path
) -> None:
    for number in (1, 2):
        order = an_order(tmp_path, f"echo attempt {number}", number=number)
        await ended(runner, await runner.launch(order))

    lines = printed(an_order(tmp_path, ""))

    assert [line for line in lines if "=====" not in line] == ["attempt 1", "attempt 2"]
    assert len(lines) == 4


async def test_what_the_engine_refuses_is_told_in_its_words(
    runner: DockerRunner, tmp_path: Path
) -> None:
    order = replace(an_order(tmp_path, ""), image="No Such Image")

    with pytest.raises(CannotRun, match="the engine says: invalid reference format"):
        await runner.launch(order)

    assert await runner.handles() == []


async def test_a_program_that_is_not_there_ends_as_in_a_shell(
    runner: DockerRunner, tmp_path: Path
) -> None:
    order = replace(an_order(tmp_path, ""), argv=("/no/such/program",))

    seen = await ended(runner, await runner.launch(order))

    assert seen.exit_code == 127
    assert "No such file or directory" in printed(order)[-1]


async def test_what_is_used_is_told(runner: DockerRunner, tmp_path: Path) -> None:
    handle = await runner.launch(an_order(tmp_path, "while true; do :; done"))

    usage = await runner.usage(handle)

    assert usage is not None
    assert usage.cpu_millicores > 100
    assert usage.memory_bytes > 0
