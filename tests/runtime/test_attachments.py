"""Going into an attempt makes a process of the job: in its place, with its limits and its rights."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.runtime import cgroups
from hublet.runtime.attach.attachments import attach, initial_environment
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import Attachment, AttachPoint, AttachRequest, Runner, Terminal
from hublet.runtime.sandbox.shim_runner import NAME as PROCESS
from hublet.runtime.shim.system import read
from patience import SOON_SECONDS
from runtime.attempts import MIB, Run, a_runner, a_while, eventually, launch, sleepers

_BWRAP = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed.")
SANDBOX = pytest.param("sandbox", marks=_BWRAP)
GROUPS = pytest.mark.skipif(
    not cgroups.own_hierarchies(), reason="The hub may not make control groups."
)
PATH = {"PATH": "/usr/bin:/bin"}

sandboxed = pytest.mark.parametrize("runner", [SANDBOX], indirect=True)
both = pytest.mark.parametrize("runner", [PROCESS, SANDBOX], indirect=True)


@pytest.fixture
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return a_runner(request.param, tmp_path)


@pytest.fixture
async def job(runner: Runner, tmp_path: Path) -> AsyncIterator[Run]:
    run = await launch(runner, tmp_path, "sleep", "60", memory_bytes=64 * MIB)
    yield run
    await runner.remove(run.handle)


async def attach_point_of(job: Run) -> AttachPoint:
    async with asyncio.timeout(SOON_SECONDS):
        while (found := await job.runner.attach_point(job.handle)) is None:
            await asyncio.sleep(0.02)
        return found


async def sent(job: Run, *argv: str, terminal: Terminal | None = None) -> Attachment:
    wish = AttachRequest(argv=argv, environment=PATH | {"HOME": "/"}, terminal=terminal)
    return await attach(await attach_point_of(job), wish, is_plain=job.runner.name == PROCESS)


async def printed(job: Run, script: str) -> tuple[int, list[str]]:
    """Return the exit status of a script in the job, and what it prints."""
    visit = await sent(job, "/bin/sh", "-c", f"({script}) 2>&1")
    try:
        return await visit.ended(), (await all_of(visit.stdout)).decode().splitlines()
    finally:
        visit.close()


async def all_of(descriptor: int) -> bytes:
    """Read until everyone who could write has ended: a terminal brings its lines one by one."""
    said = b""
    os.set_blocking(descriptor, True)
    # A terminal ends with an error (EIO), a pipe with nothing.
    with contextlib.suppress(OSError):
        while piece := await asyncio.to_thread(os.read, descriptor, 65536):
            said += piece
    return said


@sandboxed
async def test_a_guest_has_no_rights_and_can_gain_none(job: Run) -> None:
    script = "id -u; id -G; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"

    code, lines = await printed(job, script)

    none = "0" * 16
    assert (code, [line.replace("\t", " ") for line in lines]) == (
        0,
        [
            "1000",
            "1000",
            f"CapInh: {none}",
            f"CapPrm: {none}",
            f"CapEff: {none}",
            f"CapBnd: {none}",
            f"CapAmb: {none}",
            "NoNewPrivs: 1",
            "Seccomp: 2",
        ],
    )


@sandboxed
@pytest.mark.parametrize(
    "command", ["unshare -U true", "mount -t tmpfs x /tmp", "nsenter -t 1 -m true"]
)
async def test_what_the_job_may_not_do_its_guest_may_not(job: Run, command: str) -> None:
    code, _ = await printed(job, command)

    assert code != 0


@sandboxed
async def test_a_guest_is_in_every_namespace_of_the_job(job: Run) -> None:
    attach_point = await attach_point_of(job)
    names = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
    expected = [namespace_of(attach_point, name) for name in names]

    _, lines = await printed(
        job, f"cd /proc/self/ns; for n in {' '.join(names)}; do readlink $n; done; hostname"
    )

    assert lines == [*expected, job.order.job_id]


def namespace_of(attach_point: AttachPoint, name: str) -> str:
    return str(Path(f"/proc/{attach_point.process.pid}/ns/{name}").readlink())


@sandboxed
async def test_the_keeper_has_no_rights_and_tells_nothing_of_the_hub(job: Run) -> None:
    script = """
    for p in $(ls /proc | grep -E '^[0-9]+$'); do
        grep -qs python /proc/$p/comm && grep CapPrm /proc/$p/status && readlink /proc/$p/exe
    done; true
    """

    _, lines = await printed(job, script)

    assert lines == [f"CapPrm:\t{'0' * 16}"]


@GROUPS
@both
async def test_a_guest_is_in_the_control_groups_of_the_job(job: Run) -> None:
    visit = await sent(job, "sleep", "81")
    attach_point = await attach_point_of(job)

    members = [members_of(group) for group in attach_point.groups]

    visit.close()
    assert members == [{b"sleep\x0081\0", b"sleep\x0060\0"} for _ in attach_point.groups]
    assert members


def members_of(group: str) -> set[bytes]:
    """Return the commands in a group, without those that only look after them."""
    pids = read(f"{group}/cgroup.procs").split()
    commands = {read(f"/proc/{pid.decode()}/cmdline") for pid in pids}
    return {command for command in commands if command.startswith(b"sleep")}


@GROUPS
@both
async def test_the_memory_of_the_job_is_all_there_is(job: Run) -> None:
    code, lines = await printed(job, "python3 -c 'x = bytearray(200 << 20); print(len(x))'")

    assert (code != 0, "209715200" in lines) == (True, False)


@pytest.mark.parametrize("runner", [PROCESS], indirect=True)
async def test_limits_of_the_job_are_those_of_its_guest(runner: Runner, tmp_path: Path) -> None:
    job = await launch(runner, tmp_path, "sh", "-c", "ulimit -n 77; echo on; sleep 60")
    try:
        await job.prints("on")
        assert await printed(job, "ulimit -n") == (0, ["77"])
    finally:
        await runner.remove(job.handle)


@both
async def test_a_terminal_is_one_of_the_jobs_own(job: Run) -> None:
    visit = await sent(job, "sh", "-c", "tty; stty size", terminal=Terminal(size=(90, 30, 0, 0)))
    assert await visit.ended() == 0

    said = (await all_of(visit.stdout)).decode().split()

    visit.close()
    assert said == ["/dev/pts/0" if job.runner.name == "sandbox" else said[0], "30", "90"]
    assert said[0].startswith("/dev/pts/")


@both
async def test_a_guest_has_no_descriptor_of_the_hub(job: Run) -> None:
    # So many that those for the guest have high numbers.
    many = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]
    try:
        code, lines = await printed(job, "ls /proc/self/fd")
    finally:
        for fd in many:
            os.close(fd)

    # The last one is the folder that is listed.
    assert (code, lines) == (0, ["0", "1", "2", "3"])


@both
async def test_a_program_that_is_not_there_is_said(job: Run) -> None:
    with pytest.raises(CannotAttach, match="No such file or directory"):
        await sent(job, "/nonsense")


@both
async def test_a_number_that_is_another_process_by_now_is_not_entered(job: Run) -> None:
    attach_point = await attach_point_of(job)
    other = replace(
        attach_point, process=replace(attach_point.process, start=attach_point.process.start + 1)
    )

    with pytest.raises(CannotAttach, match="the job has ended"):
        await attach(other, AttachRequest(environment=PATH), is_plain=job.runner.name == PROCESS)


@sandboxed
async def test_a_job_without_namespaces_is_not_taken_for_one_with_them(job: Run) -> None:
    here = replace(
        await attach_point_of(job),
        process=replace((await attach_point_of(job)).process, pid=os.getpid(), start=own_start()),
    )

    with pytest.raises(CannotAttach):
        await attach(here, AttachRequest(environment=PATH), is_plain=False)


def own_start() -> int:
    return int(read("/proc/self/stat").rpartition(b")")[2].split()[19])


@both
async def test_everything_of_a_guest_ends_when_the_visit_is_closed(job: Run) -> None:
    time = a_while()
    visit = await sent(job, "sh", "-c", f"(setsid sleep {time} &); exec sleep {time}")
    await eventually(lambda: len(sleepers(time)) == 2)

    visit.close()

    await eventually(lambda: sleepers(time) == [])
    # The job itself goes on.
    assert await job.runner.attach_point(job.handle) is not None


@both
async def test_everything_of_a_guest_ends_with_the_job(job: Run) -> None:
    time = a_while()
    visit = await sent(job, "sh", "-c", f"(setsid sleep {time} &); exec sleep {time}")
    await eventually(lambda: len(sleepers(time)) == 2)

    await job.runner.stop(job.handle, grace_seconds=0)

    assert await asyncio.wait_for(visit.ended(), SOON_SECONDS) == -9
    visit.close()
    await eventually(lambda: sleepers(time) == [])


@both
async def test_the_variables_of_the_job_are_found(runner: Runner, tmp_path: Path) -> None:
    job = await launch(runner, tmp_path, "sleep", "60", environment={"COLOUR": "blü"})
    try:
        attach_point, is_plain = await attach_point_of(job), runner.name == PROCESS
        # Until it is the job, a process has other variables.
        await eventually(lambda: "COLOUR" in initial_environment(attach_point, is_plain=is_plain))
        found = initial_environment(attach_point, is_plain=is_plain)
    finally:
        await runner.remove(job.handle)

    assert found["COLOUR"] == "blü"
    assert {"HOME", "PATH"} <= found.keys()
    assert initial_environment(attach_point, is_plain=is_plain) == {}
