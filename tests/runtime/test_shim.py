"""The shim goes on without the hub, and takes its job along when it is killed."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime import cgroups
from hublet.runtime.attempt_folder import ProcessIdentity, boot_id, identity_of, read_status
from hublet.runtime.errors import CannotRunYet
from hublet.runtime.records import Runner
from hublet.runtime.sandbox import shim_starter
from hublet.runtime.shim import program
from hublet.runtime.shim.program import acquire_lock
from hublet.runtime.shim.system import read, start_time
from patience import SOON_SECONDS
from runtime.attempts import Run, a_runner, an_order, launch
from runtime.runner_contract import command_lines, shell

TESTS = Path(__file__).parents[1]
MISSING = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed.")


@pytest.fixture(
    params=[
        "process",
        pytest.param("process", id="process without control groups"),
        pytest.param("sandbox", marks=MISSING),
        pytest.param("sandbox", marks=MISSING, id="sandbox without control groups"),
    ]
)
def runner(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Runner:
    if "without" in request.node.callspec.id:
        monkeypatch.setattr(cgroups, "own_hierarchies", list)
    return a_runner(request.param, tmp_path)


def status_of(run: Run) -> dict[str, Any]:
    status = read_status(Path(run.handle))
    assert status is not None
    return status


def groups_left(run: Run) -> list[str]:
    return [group for group in status_of(run)["groups"] if Path(group).exists()]


def rewrite(run: Run, **changes: Any) -> None:
    (run.order.folder / "status.json").write_text(json.dumps(status_of(run) | changes))


async def until_none(command: str) -> None:
    deadline = monotonic() + SOON_SECONDS
    while command.replace(" ", "\0").encode() + b"\0" in command_lines():
        assert monotonic() < deadline, f"{command!r} goes on"
        await asyncio.sleep(0.01)


def a_killed_hub(name: str, data_dir: Path, job_id: str, *argv: str) -> str:
    """Launch an attempt by a hub that is then killed; return the handle."""
    with subprocess.Popen(
        [
            sys.executable,
            str(TESTS / "runtime" / "lone_hub.py"),
            name,
            str(data_dir),
            job_id,
            *argv,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(TESTS)},
    ) as hub:
        assert hub.stdout is not None
        handle = hub.stdout.readline().strip()
        hub.kill()
    return handle


async def test_a_killed_hub_leaves_the_attempt_running_and_finds_it_again(
    runner: Runner, tmp_path: Path
) -> None:
    # It runs until it is told to end, however long the test takes.
    lines = "for i in $(seq 1 19); do echo line $i; sleep 0.05; done"
    script = f"exec 2>/dev/null; trap 'exit 9' TERM; {lines}; sleep 600 & echo line 20; wait"
    argv = shell(script)
    order = an_order(tmp_path, *argv, job_id="a" * 24)
    handle = a_killed_hub(runner.name, tmp_path, order.job_id, *argv)

    assert await runner.handles() == [handle]
    assert await runner.launch(order) == handle
    run = Run(runner=runner, order=order, handle=handle)
    assert (await run.seen()).phase is Phase.running
    await run.prints("line 20")
    await runner.stop(handle, grace_seconds=SOON_SECONDS)
    seen = await run.ended()
    assert (seen.phase, seen.exit_code) == (Phase.exited, 9)
    assert run.lines() == [f"line {number}" for number in range(1, 21)]


async def test_the_deadline_is_kept_without_the_hub(runner: Runner, tmp_path: Path) -> None:
    order = an_order(tmp_path, *shell("sleep 60"), timeout_seconds=1)
    run = Run(runner=runner, order=order, handle=await runner.launch(order))
    # Nobody asks: the shim alone keeps the time.
    deadline = monotonic() + SOON_SECONDS
    while status_of(run)["phase"] != "exited":
        assert monotonic() < deadline
        await asyncio.sleep(0.05)
    assert status_of(run)["timed_out"] is True


async def test_a_killed_shim_takes_its_job_along(runner: Runner, tmp_path: Path) -> None:
    command = f"sleep {700_000 + os.getpid()}"
    script = f"{command} & setsid {command} & echo ready; {command}"
    run = await launch(runner, tmp_path, *shell(script))
    await run.prints("ready")
    started = (await run.seen()).started_at
    assert identity_of(status_of(run)).send(signal.SIGKILL)

    seen = await run.ended()
    assert seen == Observation(
        phase=Phase.gone, started_at=started, reason="what looked after it was killed"
    )
    await until_none(command)
    assert groups_left(run) == []
    assert await runner.launch(run.order) == run.handle
    assert (await run.seen()).phase is Phase.gone


async def test_a_killed_shim_takes_its_job_along_though_nobody_looks(
    runner: Runner, tmp_path: Path
) -> None:
    command = f"sleep {500_000 + os.getpid()}"
    run = await launch(runner, tmp_path, *shell(f"echo ready; exec {command}"))
    await run.prints("ready")
    assert identity_of(status_of(run)).send(signal.SIGKILL)
    await until_none(command)
    await runner.remove(run.handle)


def test_one_shim_at_most_has_an_attempt(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not acquire_lock(str(tmp_path))
    assert acquire_lock(str(tmp_path))


def test_no_shim_has_an_attempt_that_was_begun_before(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("{}")
    assert not acquire_lock(str(tmp_path))


async def test_everything_ends_with_the_main_process(runner: Runner, tmp_path: Path) -> None:
    command = f"sleep {600_000 + os.getpid()}"
    run = await launch(
        runner, tmp_path, *shell(f"setsid {command} & ({command} &); echo ready; sleep 0.1")
    )
    assert (await run.ended()).exit_code == 0
    assert command.replace(" ", "\0").encode() + b"\0" not in command_lines()


async def test_memory_has_a_limit_of_some_kind(runner: Runner, tmp_path: Path) -> None:
    run = await launch(
        runner, tmp_path, "python3", "-c", "x = bytearray(300 * 2**20)", memory_bytes=64 * 2**20
    )
    assert (await run.ended()).exit_code not in {0, None}


async def test_what_runs_can_be_measured(runner: Runner, tmp_path: Path) -> None:
    run = await launch(runner, tmp_path, *shell("echo ready; while true; do :; done"))
    await run.prints("ready")
    first = await runner.usage(run.handle)
    assert first is not None
    assert first.cpu_millicores == 0
    async with asyncio.timeout(SOON_SECONDS):
        while (usage := await _usage_of_a_moment(runner, run)).cpu_millicores <= 20:
            pass
    await runner.stop(run.handle, grace_seconds=0)
    assert usage.cpu_millicores < 1500
    assert 100_000 < usage.memory_bytes < 64 * 2**20
    await run.ended()


async def _usage_of_a_moment(runner: Runner, run: Run) -> Usage:
    await asyncio.sleep(0.5)
    usage = await runner.usage(run.handle)
    assert usage is not None
    return usage


async def test_what_is_removed_while_it_runs_ends(runner: Runner, tmp_path: Path) -> None:
    command = f"sleep {800_000 + os.getpid()}"
    run = await launch(runner, tmp_path, *shell(f"echo ready; {command} & wait"))
    await run.prints("ready")
    await runner.remove(run.handle)
    await until_none(command)
    assert (await run.seen()).phase is Phase.gone


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"start": 1}, id="another process got its number"),
        pytest.param({"pid": 2**22 + 1}, id="there is no such process"),
    ],
)
async def test_a_number_alone_is_not_the_shim(tmp_path: Path, changes: dict[str, Any]) -> None:
    runner = a_runner("process", tmp_path)
    run = await launch(runner, tmp_path, *shell("echo ready; sleep 60"))
    await run.prints("ready")
    true = status_of(run)
    rewrite(run, **changes, groups=[])
    status = status_of(run)
    try:
        assert not identity_of(status).lives()
        assert not identity_of(status).send(signal.SIGKILL)
        assert identity_of(true).lives()
        assert (await run.seen()).phase is Phase.gone
    finally:
        identity_of(true).send(signal.SIGKILL)


async def test_what_runs_on_another_machine_is_not_gone_and_hears_of_a_stop(
    runner: Runner, tmp_path: Path
) -> None:
    run = await launch(runner, tmp_path, *shell("echo ready; sleep 60"))
    await run.prints("ready")
    # What a hub sees that shares the folder, and not the processes.
    rewrite(run, boot="another")

    seen = await run.seen()
    assert (seen.phase, seen.reason) == (Phase.unknown, "it runs on another machine")
    await runner.stop(run.handle, grace_seconds=5)
    seen = await run.ended()

    assert (seen.stopped, seen.signal) == (True, signal.SIGTERM)


async def test_what_ran_before_the_machine_was_started_again_is_gone(
    runner: Runner, tmp_path: Path
) -> None:
    run = await launch(runner, tmp_path, *shell("echo ready; sleep 60"))
    await run.prints("ready")
    assert identity_of(status_of(run)).send(signal.SIGKILL)
    rewrite(run, boot="another")

    seen = await run.ended()

    assert (seen.phase, seen.reason) == (Phase.gone, "the machine was started anew")


@pytest.mark.skipif(not cgroups.own_hierarchies(), reason="Control groups cannot be made here.")
@pytest.mark.parametrize("name", ["process", pytest.param("sandbox", marks=MISSING)])
async def test_too_many_processes_are_told(tmp_path: Path, name: str) -> None:
    runner = a_runner(name, tmp_path)
    script = "import os, time\nwhile True:\n    if not os.fork():\n        time.sleep(60)\n"
    run = await launch(runner, tmp_path, "python3", "-c", script, memory_bytes=4096 * 2**20)

    seen = await run.ended()

    assert (seen.exit_code, seen.reason) == (1, "it wanted more than 2048 processes")


def test_a_corpse_does_not_live() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) == 0
    child.wait()


def test_this_process_lives() -> None:
    me = ProcessIdentity(pid=os.getpid(), start=start_time(os.getpid()), boot=boot_id())
    assert me.lives()
    assert not replace(me, start=me.start + 1).lives()


async def test_a_status_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    runner = a_runner("process", tmp_path)
    run = await launch(runner, tmp_path, "true")
    await run.ended()
    (run.order.folder / "status.json").write_text("")
    assert (await run.seen()).phase is Phase.gone


async def test_the_one_who_starts_shims_is_replaced_when_it_is_killed(tmp_path: Path) -> None:
    runner = a_runner("process", tmp_path)
    await (await launch(runner, tmp_path, "true")).ended()
    first = starters_of_this_process()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    run = await launch(runner, tmp_path, *shell("exit 3"))
    assert (await run.ended()).exit_code == 3
    assert starters_of_this_process() - first


@pytest.mark.parametrize(
    ("does", "answer"),
    [
        pytest.param(lambda _: os.write(1, program.STARTED), program.STARTED, id="answers"),
        pytest.param(
            lambda _: os.kill(os.getpid(), signal.SIGKILL), program.FAILED, id="is killed"
        ),
    ],
)
def test_nobody_waits_for_a_shim_that_is_killed_before_it_answers(
    monkeypatch: pytest.MonkeyPatch, does: Callable[[dict[str, Any]], object], answer: bytes
) -> None:
    monkeypatch.setattr(program, "run_shim", does)
    assert program.fork_shim({}) == answer
    os.wait()


def starters_of_this_process() -> set[int]:
    """Those who wait for orders on a pipe of which this process has the other end."""
    mine = {pipe_of(path) for path in Path("/proc/self/fd").iterdir()} - {None}
    return {
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"from shim.program import main" in read(str(path))
        and pipe_of(path.with_name("fd") / "0") in mine
    }


def pipe_of(path: Path) -> str | None:
    """Return the pipe; None for anything else: every shim of the machine reads from /dev/null."""
    try:
        name = str(path.readlink())
    except OSError:
        return None
    return name if name.startswith("pipe:") else None


async def test_an_attempt_that_cannot_be_handed_over_is_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim_starter, "_COMMAND", ("/nonexistent",))
    with pytest.raises(CannotRunYet, match=r"^The attempt could not be started: "):
        await launch(a_runner("process", tmp_path), tmp_path, "true")


async def test_an_attempt_that_could_not_begin_can_be_ordered_again(tmp_path: Path) -> None:
    runner = a_runner("process", tmp_path)
    order = an_order(tmp_path, *shell("echo at last"))
    order.log.mkdir(parents=True)
    with pytest.raises(CannotRunYet):
        await runner.launch(order)
    order.log.rmdir()
    run = Run(runner=runner, order=order, handle=await runner.launch(order))
    assert (await run.ended()).exit_code == 0
    assert run.lines() == ["at last"]
