"""A cluster for tests: the volumes of a pod are a folder, exec is a process here, the test is the job."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import Status
from lightkube.resources.core_v1 import Pod

from hublet.core import clock
from hublet.runtime.kubernetes import manifests, volumes
from hublet.runtime.kubernetes.cluster import resource_of
from hublet.runtime.kubernetes.manifests import FILL_CONTAINER, JOB_CONTAINER, PodSettings
from hublet.runtime.kubernetes.pod_exec import ExecFrame
from hublet.runtime.kubernetes.runner import KubernetesRunner
from hublet.runtime.records import LaunchOrder

_STDOUT, _STATUS = 1, 3


@dataclass(slots=True)
class LocalPod:
    """A pod, its volumes, and what its node has kept of its log."""

    manifest: dict[str, Any]
    root: Path
    log: list[str] = field(default_factory=list)
    started: str | None = None
    ended: str | None = None
    exit_code: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_filling(self) -> bool:
        return "initContainers" in self.manifest["spec"] and not (self.root / ".ready").exists()

    def state(self) -> dict[str, Any]:
        if self.ended is not None:
            times = {"startedAt": self.started, "finishedAt": self.ended}
            return {"terminated": times | {"exitCode": self.exit_code, "reason": "Completed"}}
        return {"running": {"startedAt": self.started}}

    def show(self) -> Pod:
        """Return the pod as a cluster shows it; the job begins once its volumes are there."""
        status: dict[str, Any] = {"phase": "Pending"}
        if self.is_filling:
            state = {"running": {"startedAt": _now()}}
            status["initContainerStatuses"] = [_status(FILL_CONTAINER, state)]
        else:
            self.started = self.started or _now()
            status = {"phase": "Running"}
            status["containerStatuses"] = [_status(JOB_CONTAINER, self.state())]
        return resource_of(Pod, self.manifest | {"status": status})

    def prints(self, *lines: str) -> None:
        for line in lines:
            stamp = f"{clock.now() - clock.offset():%Y-%m-%dT%H:%M:%S.%fZ}"
            self.log.append(f"{stamp} {line}\n")
        self._change()

    def end(self, exit_code: int = 0) -> None:
        self.ended, self.exit_code = _now(), exit_code
        self._change()

    def _change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def _status(name: str, state: dict[str, Any]) -> dict[str, Any]:
    common = {"image": "x", "imageID": "x", "ready": True, "restartCount": 0}
    return {"name": name, "state": state} | common


def _now() -> str:
    return f"{clock.now() - clock.offset():%Y-%m-%dT%H:%M:%SZ}"


class LocalCluster:
    """What a runner asks a ClusterConnection for; several runners may share one."""

    namespace, server = "jobs", "http://cluster"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pods: dict[str, LocalPod] = {}
        self.api = self
        # Raised by every exec as long as it is set.
        self.failure: OSError | None = None

    async def create_attempt(self, order: LaunchOrder, settings: PodSettings) -> None:
        name = manifests.name_of(order)
        if name not in self.pods:
            root = self._folder / name
            root.mkdir(parents=True)
            self.pods[name] = LocalPod(manifests.pod_of(order, settings), root)

    async def apply_policy(self, _settings: PodSettings) -> None:
        return

    async def close(self) -> None:
        return

    async def get(self, _kind: type[Pod], name: str) -> Pod:
        if name not in self.pods:
            raise ApiError(status=Status(code=404, message=f"There is no pod {name}."))
        return self.pods[name].show()

    async def list(self, _kind: type[Pod], *, labels: dict[str, Any]) -> AsyncIterator[Pod]:
        for pod in list(self.pods.values()):
            if labels.items() <= pod.manifest["metadata"]["labels"].items():
                yield pod.show()

    async def patch(self, _kind: type[Pod], name: str, patch: dict[str, Any]) -> None:
        if "finalizers" in str(patch):
            shutil.rmtree(self.pods.pop(name).root)
            return
        self.pods[name].manifest["metadata"]["annotations"] |= patch["metadata"]["annotations"]

    async def delete(self, _kind: type[Pod], name: str, *, grace_period: int) -> None:
        assert name in self.pods
        assert grace_period >= 0

    @asynccontextmanager
    async def log(
        self, pod: str, *, since: str | None, is_followed: bool
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._lines(self.pods[pod], since or "", is_followed=is_followed)

    async def _lines(self, pod: LocalPod, since: str, *, is_followed: bool) -> AsyncIterator[bytes]:
        told = list[str]()
        while True:
            changed = pod.changed
            for line in [each for each in pod.log if each[:19] >= since[:19]]:
                if line not in told:
                    told.append(line)
                    yield line.encode()
            if not is_followed or pod.ended is not None:
                return
            await changed.wait()

    async def start_exec(
        self, pod: str, argv: Iterable[str], *, container: str, has_input: bool = True
    ) -> "LocalExec":
        found = self.pods[pod]
        if self.failure is not None:
            raise self.failure
        if (container == FILL_CONTAINER) is not found.is_filling:
            raise OSError(f"The container {container} does not run.")
        # As the pod sees them, the volumes are elsewhere.
        here = [word.replace(manifests.VOLUMES_ROOT, str(found.root)) for word in argv]
        process = await asyncio.create_subprocess_exec(
            *here,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        return LocalExec(process)


@dataclass(slots=True)
class LocalExec:
    """A program that runs here as if it did in a container."""

    process: asyncio.subprocess.Process

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def frames(self) -> AsyncIterator[ExecFrame]:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(1000):
            yield ExecFrame(_STDOUT, data)
        code = await self.process.wait()
        cause = {"reason": "ExitCode", "message": str(code)}
        failed = {"status": "Failure", "message": "failed", "details": {"causes": [cause]}}
        yield ExecFrame(_STATUS, json.dumps(failed if code else {"status": "Success"}).encode())

    async def close(self) -> None:
        """Let the program see the end of its input, as a broken connection does."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()


def a_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCluster:
    def start_exec(cluster: LocalCluster, pod: str, argv: Iterable[str], **options: Any) -> Any:
        return cluster.start_exec(pod, argv, **options)

    monkeypatch.setattr(volumes, "start_exec", start_exec)
    return LocalCluster(folder)


def a_runner(cluster: LocalCluster, data_dir: Path) -> KubernetesRunner:
    settings = PodSettings(hub="h", data_dir=data_dir.absolute(), helper_image="helper")
    return KubernetesRunner(cluster=cluster, settings=settings)  # type: ignore[arg-type]
