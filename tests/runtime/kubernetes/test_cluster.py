"""The Kubernetes runner in a real cluster: the one that KUBECONFIG names; else that is told.

HUBLET_TEST_KUBERNETES_IMAGE is an image with sh, tar and nc that its nodes have or can pull.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hublet.core import clock
from hublet.core.ids import new_object_id
from hublet.jobs.records import Phase
from hublet.runtime.errors import PortClosed
from hublet.runtime.records import (
    Attachment,
    AttachRequest,
    BindMount,
    GroupMembership,
    RemoteAttachPoint,
    Runner,
    Terminal,
)
from patience import SOON_SECONDS
from runtime.attempts import MIB, an_order, launch, outcome
from runtime.runner_contract import RunnerContract, shell

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")
if not os.environ.get("KUBECONFIG"):
    pytest.skip(
        "KUBECONFIG names no cluster: see CONTRIBUTING.md, Kubernetes", allow_module_level=True
    )

from lightkube.resources.core_v1 import Pod, Service

from hublet.core.config.kinds import ImageSource
from hublet.runtime.kubernetes import manifests, network_probe
from hublet.runtime.kubernetes.cluster import ClusterConnection
from hublet.runtime.kubernetes.manifests import PodSettings
from hublet.runtime.kubernetes.runner import KubernetesRunner

IMAGE = os.environ.get("HUBLET_TEST_KUBERNETES_IMAGE", "busybox:1")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
async def runner(data_dir: Path) -> AsyncIterator[KubernetesRunner]:
    runner = a_runner(data_dir)
    yield runner
    for handle in await runner.handles():
        await runner.remove(handle)
    await runner.close()


def a_runner(data_dir: Path, **changes: Any) -> KubernetesRunner:
    settings = {
        "hub": new_object_id()[:16],
        "data_dir": data_dir,
        "helper_image": IMAGE,
        "image_map": (ImageSource(pattern="ubuntu", target=IMAGE),),
    }
    return KubernetesRunner(
        cluster=ClusterConnection(None), settings=PodSettings(**(settings | changes))
    )


class TestKubernetes(RunnerContract):
    """What differs, and why, is said at each test."""

    async def test_the_times_are_those_of_the_hub(self, runner: Runner, data_dir: Path) -> None:
        """A cluster tells whole seconds."""
        before = clock.now().replace(microsecond=0)
        seen, _ = await outcome(runner, data_dir, *shell("sleep 0.1"))
        assert seen.started_at is not None
        assert seen.ended_at is not None
        assert before <= seen.started_at <= seen.ended_at <= clock.now()

    async def test_both_kinds_of_output_come_in_order(self, runner: Runner, data_dir: Path) -> None:
        """Each kind has a pipe of its own, and a node reads them as it likes."""
        script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
        _, lines = await outcome(runner, data_dir, *shell(script))
        assert [line for line in lines if "out" in line] == ["out 1", "out 2", "out 3"]
        assert [line for line in lines if "err" in line] == ["err 1", "err 2", "err 3"]

    async def test_each_line_has_its_time_and_the_first_tells_of_the_start(
        self, runner: Runner, data_dir: Path
    ) -> None:
        """The start is a whole second; lines have the time of the node."""
        before = clock.micros() // 1_000_000 * 1_000_000
        run = await launch(runner, data_dir, *shell("echo a; sleep 0.2; echo b"))
        await run.ended()
        stamps = [int(line.partition(" ")[0]) for line in run.order.log.read_text().splitlines()]
        assert before <= stamps[0] <= stamps[1]
        assert stamps[1] + 150_000 <= stamps[2] <= clock.micros()

    async def test_what_is_too_slow_is_asked_to_end_and_killed_after_the_grace(
        self, runner: Runner, data_dir: Path
    ) -> None:
        """A grace has whole seconds."""
        gentle = "trap 'echo bye; exit 7' TERM; echo ready; sleep 60 & wait"
        stubborn = "trap '' TERM; while true; do sleep 1; done"
        (asked, lines), (killed, _) = await asyncio.gather(
            outcome(runner, data_dir, *shell(gentle), timeout_seconds=5),
            outcome(runner, data_dir, *shell(stubborn), timeout_seconds=5, grace_seconds=1),
        )
        assert (asked.exit_code, asked.timed_out, asked.stopped) == (7, True, False)
        assert lines == ["ready", "bye"]
        assert (killed.signal, killed.timed_out) == (9, True)
        assert killed.started_at is not None
        assert killed.ended_at is not None
        assert (killed.ended_at - killed.started_at).total_seconds() >= 5

    async def test_one_that_is_stopped_before_it_began_never_begins(
        self, runner: Runner, data_dir: Path
    ) -> None:
        """A pod that no node can take."""
        run = await launch(runner, data_dir, *shell("echo begun"), cores=100_000)
        assert (await run.seen()).phase is Phase.pending
        await runner.stop(run.handle, grace_seconds=1)
        seen = await run.ended()
        assert (seen.phase, seen.stopped, seen.started_at) == (Phase.exited, True, None)
        assert not run.order.log.exists()

    async def test_nothing_of_much_output_is_lost(self, runner: Runner, data_dir: Path) -> None:
        """A busy node with containerd 1.6 itself loses the last lines of what ends at once."""
        _, lines = await outcome(runner, data_dir, *shell("seq 1 50000; sleep 2"))
        assert lines == [str(number) for number in range(1, 50_001)]

    async def test_a_program_that_is_not_there_is_named(
        self, runner: Runner, data_dir: Path
    ) -> None:
        """There is no log of what never ran."""
        run = await launch(runner, data_dir, "nonsense", "--flag")
        seen = await run.ended()
        assert (seen.phase, seen.exit_code) == (Phase.exited, 127)
        assert seen.reason == "nonsense could not be started: No such file or directory"

    async def test_its_end_is_hinted_at(self, runner: Runner, data_dir: Path) -> None:
        """So is everything else that happens to a pod."""
        run = await launch(runner, data_dir, *shell("sleep 0.2"))
        async with asyncio.timeout(SOON_SECONDS):
            async for handle in runner.watch():
                if handle == run.handle and (await run.seen()).phase is Phase.exited:
                    break

    async def test_what_ended_uses_nothing(self, runner: Runner, data_dir: Path) -> None:
        """Only a cluster with a metrics server tells what runs."""
        run = await launch(runner, data_dir, *shell("exit 0"))
        await run.ended()
        assert await runner.usage(run.handle) is None

    async def test_too_much_memory_is_told(self, runner: Runner, data_dir: Path) -> None:
        argv = shell("exec dd if=/dev/zero of=/dev/null bs=300M count=1")
        seen, _ = await outcome(runner, data_dir, *argv, memory_bytes=64 * MIB)
        assert (seen.out_of_memory, seen.exit_code, seen.signal) == (True, 137, 9)

    async def test_too_many_processes_are_contained(self, runner: Runner, data_dir: Path) -> None:
        pytest.skip("How many processes a pod may have is a setting of the nodes.")


async def test_an_image_that_is_not_there_is_told_while_it_is_awaited(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    run = await launch(runner, data_dir, "true", image="127.0.0.1:1/none:1")
    async with asyncio.timeout(SOON_SECONDS):
        while "none:1" not in ((seen := await run.seen()).reason or ""):
            await asyncio.sleep(0.1)
    assert seen.phase is Phase.pending


async def test_another_worker_takes_an_attempt_over_with_its_log(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    script = "echo one; sleep 3; echo two; exit 3"
    run = await launch(runner, data_dir, *shell(script))
    await run.prints("one")
    other = KubernetesRunner(cluster=ClusterConnection(None), settings=runner.settings)
    follower = runner._followers[run.handle]  # noqa: SLF001 - as if the process had been killed
    follower.cancel()
    await asyncio.gather(follower, return_exceptions=True)

    seen = await replace(run, runner=other).ended()
    await other.close()

    assert seen.exit_code == 3
    assert run.lines() == ["one", "two"]


async def test_volumes_come_in_and_what_was_written_comes_back(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    sources = [data_dir / name for name in ("commit", "bucket")]
    for source in sources:
        (source / "deep").mkdir(parents=True)
        (source / "deep" / "file").write_text(source.name)
    binds = (
        BindMount(source=sources[0], target="/data", read_only=True),
        BindMount(source=sources[1], target="/out", read_only=False),
    )
    script = (
        "cat /data/deep/file; cd /out; echo more > new; rm deep/file; echo x 2>/dev/null > /data/x"
    )

    seen, lines = await outcome(runner, data_dir, *shell(script), binds=binds)

    assert (seen.exit_code, lines) == (1, ["commit"])
    assert (sources[1] / "new").read_text() == "more\n"
    assert not (sources[1] / "deep" / "file").exists()
    assert (sources[0] / "deep" / "file").read_text() == "commit"


async def read_all(runner: KubernetesRunner, fd: int) -> bytes:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(fd), "rb")
    )
    async with asyncio.timeout(SOON_SECONDS):
        return await reader.read()


async def entered(runner: KubernetesRunner, handle: str, **request: Any) -> Attachment:
    point = await runner.attach_point(handle)
    assert point is not None
    return await point.attach(AttachRequest(environment={"LANG": "C.UTF-8"}, **request))


async def test_a_program_runs_inside_with_the_environment_of_the_job(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    environment = {"GREETING": "hello"}
    run = await launch(runner, data_dir, *shell("echo ready; sleep 60"), environment=environment)
    await run.prints("ready")

    script = "cat; echo $GREETING $LANG; echo wrong >&2; exit 5"
    attachment = await entered(runner, run.handle, argv=("/bin/sh", "-c", script))
    os.write(attachment.stdin, b"typed\n")
    attachment.end_input()
    output = await read_all(runner, attachment.stdout)
    code = await attachment.ended()
    attachment.close()
    await attachment.wait_closed()

    assert (output, code) == (b"typed\nhello C.UTF-8\n", 5)


async def test_a_terminal_has_its_size(runner: KubernetesRunner, data_dir: Path) -> None:
    run = await launch(runner, data_dir, *shell("echo ready; sleep 60"))
    await run.prints("ready")

    # The size comes after the start, as it does to a shell; until then busybox may print nothing.
    script = "until stty size 2>/dev/null | grep [1-9]; do sleep 0.1; done; exit 3"
    terminal = Terminal(size=(81, 25, 0, 0))
    attachment = await entered(runner, run.handle, argv=("sh", "-c", script), terminal=terminal)
    output = await read_all(runner, attachment.stdout)
    code = await attachment.ended()
    attachment.close()
    await attachment.wait_closed()

    assert (code, output.split()) == (3, [b"25", b"81"])


async def test_a_signal_ends_what_a_guest_started(runner: KubernetesRunner, data_dir: Path) -> None:
    run = await launch(runner, data_dir, *shell("echo ready; sleep 60"))
    await run.prints("ready")

    attachment = await entered(runner, run.handle, argv=("sleep", "50"))
    ending = asyncio.create_task(attachment.ended())
    async with asyncio.timeout(SOON_SECONDS):
        while not ending.done():
            # A signal may come before there is anything to hear it.
            attachment.send(signal.SIGTERM)
            await asyncio.wait([ending], timeout=0.5)
    attachment.close()
    await attachment.wait_closed()

    assert ending.result() == 143


async def dialed(point: RemoteAttachPoint, port: int) -> socket.socket:
    """Dial until somebody listens."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            with suppress(PortClosed):
                return await point.dial(port)
            await asyncio.sleep(0.1)


async def test_a_port_of_a_pod_is_reached_and_a_closed_one_is_told(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    serving = "echo ready; while true; do echo hello | nc -l -p 7000; done"
    run = await launch(runner, data_dir, *shell(serving))
    await run.prints("ready")
    point = await runner.attach_point(run.handle)
    assert point is not None

    with await dialed(point, 7000) as made:
        async with asyncio.timeout(SOON_SECONDS):
            told = await asyncio.get_running_loop().sock_recv(made, 100)
    assert told == b"hello\n"
    with pytest.raises(PortClosed):
        await point.dial(7001)


async def test_members_of_a_group_have_services_that_go_with_the_last_of_them(
    runner: KubernetesRunner, data_dir: Path
) -> None:
    name = f"g{new_object_id()[:12]}-train"
    group = GroupMembership(key=name, names=(name,))
    runs = [
        await launch(runner, data_dir, *shell("echo ready; sleep 60"), group=group) for _ in "ab"
    ]
    for run in runs:
        await run.prints("ready")
    point = await runner.attach_point(runs[0].handle)
    assert point is not None

    # The role of the hub may not read it, but change nothing in it.
    service = await runner.cluster.api.patch(Service, name, {})

    assert await point.find_peers(name) == sorted(run.handle for run in runs)
    assert service.metadata is not None
    owners = [owner.name for owner in service.metadata.ownerReferences or ()]
    assert sorted(owners) == sorted(run.handle for run in runs)


async def test_the_cluster_says_whether_it_enforces_policies(runner: KubernetesRunner) -> None:
    is_enforced, sentence = await network_probe.check_policies(runner)

    said = {True: network_probe.ENFORCED, False: network_probe.IGNORED}
    assert is_enforced is not None, sentence
    assert sentence == said[is_enforced]
    labels: dict[str, Any] = {manifests.NETWORK: runner.settings.hub}
    async with asyncio.timeout(SOON_SECONDS):
        while [pod async for pod in runner.cluster.api.list(Pod, labels=labels)]:
            await asyncio.sleep(0.1)


async def test_a_pod_waits_in_a_queue(data_dir: Path) -> None:
    runner = a_runner(data_dir, queue="team")
    order = an_order(data_dir, "true")
    handle = await runner.launch(order)
    pod = await runner.cluster.api.get(Pod, handle)
    await runner.remove(handle)
    await runner.close()
    assert pod.metadata is not None
    assert (pod.metadata.labels or {})["kueue.x-k8s.io/queue-name"] == "team"
