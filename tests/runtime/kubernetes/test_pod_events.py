"""What the events of a pod say of its wait, and when they are asked for."""

import io
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from lightkube.resources.core_v1 import Event

from hublet.core import clock
from hublet.core.config import LogSettings
from hublet.core.logs import configure
from hublet.jobs.records import Observation, Phase
from hublet.runtime.kubernetes.cluster import ClusterConnection, resource_of
from hublet.runtime.kubernetes.manifests import PodSettings
from hublet.runtime.kubernetes.pod_status import problem_in
from hublet.runtime.kubernetes.runner import KubernetesRunner

SANDBOX = "FailedCreatePodSandBox: its node cannot set up its sandbox or its network"
MOUNT = "FailedMount: its node cannot mount a volume"
PRIVATE = (
    'MountVolume.SetUp failed for volume "nas": mount -t nfs 10.0.0.5:/export /var/lib/kubelet/x'
)


def event(reason: str, second: int, field: str = "lastTimestamp") -> dict[str, Any]:
    time = f"2026-11-17T10:00:{second:02}Z"
    pod = {"kind": "Pod", "name": "hublet-1-1"}
    told = {"involvedObject": pod, "metadata": {}, "reason": reason, "message": PRIVATE}
    return told | ({"series": {field: time}} if field == "lastObservedTime" else {field: time})


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        pytest.param([], None, id="there are none"),
        pytest.param([event("Scheduled", 1)], None, id="all is well"),
        pytest.param([event("Scheduled", 1), event("FailedMount", 2)], MOUNT, id="a mount"),
        pytest.param([event("FailedCreatePodSandBox", 1)], SANDBOX, id="a sandbox"),
        pytest.param(
            [event("FailedCreatePodSandBox", 1), event("SandboxChanged", 2)],
            SANDBOX,
            id="it is tried again",
        ),
        pytest.param(
            [event("FailedMount", 2), event("FailedCreatePodSandBox", 1)],
            MOUNT,
            id="the newest counts, whatever their order",
        ),
        pytest.param([event("FailedMount", 1), event("Pulling", 2)], None, id="it went on since"),
        pytest.param(
            [event("FailedMount", 1), event("Pulling", 1)], None, id="within the same second"
        ),
        pytest.param(
            [event("Pulled", 1), event("FailedMount", 2, "eventTime")], MOUNT, id="a newer writer"
        ),
        pytest.param(
            [event("Pulled", 1), event("FailedMount", 2, "lastObservedTime")], MOUNT, id="a series"
        ),
        pytest.param([event("DNSConfigForming", 1)], None, id="a harmless warning"),
    ],
)
def test_the_newest_event_that_matters_is_the_problem(
    events: list[dict[str, Any]], problem: str | None
) -> None:
    """No address, folder or volume of the cluster is in it: all events here have a message."""
    assert problem_in(resource_of(Event, each) for each in events) == problem


class ScriptedApi:
    """API server with one pod: it tells of a mount that fails, and records who asks for events."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {"phase": "Pending"}
        self.answer = HTTPStatus.OK
        self.asked: list[str] = []

    async def read_pod(self, request: web.Request) -> web.Response:
        metadata = {"name": request.match_info["pod"], "namespace": "jobs"}
        spec = {"containers": [{"name": "job"}]}
        return web.json_response({"metadata": metadata, "spec": spec, "status": self.status})

    async def list_events(self, request: web.Request) -> web.Response:
        self.asked.append(request.query["fieldSelector"])
        if self.answer is not HTTPStatus.OK:
            told = {"kind": "Status", "code": self.answer, "message": "events is forbidden"}
            # lightkube takes only this very type for an answer of a cluster.
            body = json.dumps(told).encode()
            return web.Response(body=body, content_type="application/json", status=self.answer)
        items = [event("Scheduled", 1), event("FailedMount", 2)]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedApi]:
    scripted = ScriptedApi()
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/jobs/pods/{pod}", scripted.read_pod)
    app.router.add_get("/api/v1/namespaces/jobs/events", scripted.list_events)
    server = web.AppRunner(app, access_log=None)
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    host, port = server.addresses[0][:2]
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "namespace": "jobs"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    yield scripted
    await server.cleanup()


@pytest.fixture
async def runner(api: ScriptedApi, tmp_path: Path) -> AsyncIterator[KubernetesRunner]:
    settings = PodSettings(hub="h", data_dir=tmp_path)
    runner = KubernetesRunner(cluster=ClusterConnection(None), settings=settings)
    yield runner
    await runner.close()


class MovedClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    moved = MovedClock()
    monkeypatch.setattr(clock, "monotonic", moved)
    return moved


def pending(reason: str | None) -> Observation:
    return Observation(phase=Phase.pending, reason=reason)


async def test_only_a_pod_that_is_pending_for_long_is_asked_about_and_now_and_then(
    api: ScriptedApi, runner: KubernetesRunner, moved: MovedClock
) -> None:
    seen = list[tuple[str | None, int]]()
    for passed in (0, 4, 2, 1, 28, 2):
        moved.now += passed
        observation = await runner.inspect("hublet-1-1")
        assert observation.phase is Phase.pending
        seen.append((observation.reason, len(api.asked)))

    assert seen == [(None, 0), (None, 0), (MOUNT, 1), (MOUNT, 1), (MOUNT, 1), (MOUNT, 2)]
    assert set(api.asked) == {"involvedObject.kind=Pod,involvedObject.name=hublet-1-1"}


async def test_what_the_status_says_comes_first(
    api: ScriptedApi, runner: KubernetesRunner, moved: MovedClock
) -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    api.status = {"phase": "Pending", "conditions": [gated]}
    for _ in range(2):
        assert await runner.inspect("p") == pending("it waits in the queue of the cluster")
        moved.now += 60
    assert api.asked == []


async def test_a_hub_without_the_right_goes_on_and_says_so_once(
    api: ScriptedApi, runner: KubernetesRunner, moved: MovedClock
) -> None:
    configure(LogSettings(), stream=(log := io.StringIO()))
    api.answer = HTTPStatus.FORBIDDEN
    for _ in range(3):
        assert await runner.inspect("p") == pending(None)
        moved.now += 60

    assert len(api.asked) == 2
    assert log.getvalue().count("apply the role again") == 1
