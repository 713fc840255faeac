"""What the status of a pod says of an attempt."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from lightkube.resources.core_v1 import Pod

from hublet.jobs.records import Observation, Phase
from hublet.runtime.kubernetes.cluster import resource_of
from hublet.runtime.kubernetes.pod_status import ObservedPod, observation_of

NOW = datetime(2026, 11, 17, 10, 5, tzinfo=UTC)
BEGAN, ENDED = "2026-11-17T10:00:00Z", "2026-11-17T10:01:00Z"


def seen(
    *, metadata: dict[str, Any] | None = None, is_drained: bool = True, **status: Any
) -> Observation:
    spec = {"containers": [{"name": "job"}], "nodeName": status.pop("node", None)}
    spec["activeDeadlineSeconds"] = status.pop("deadline", None)
    pod = resource_of(Pod, {"metadata": metadata or {}, "spec": spec, "status": status})
    return observation_of(ObservedPod(pod=pod, is_drained=is_drained, now=NOW))


def job(**state: Any) -> list[dict[str, Any]]:
    default = {"name": "job", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return [default | {"state": state}]


def ended(code: int, **more: Any) -> list[dict[str, Any]]:
    times = {"startedAt": BEGAN, "finishedAt": ENDED}
    return job(terminated={"exitCode": code} | times | more)


def by(whom: str) -> dict[str, Any]:
    return {"annotations": {"hublet/ended-by": whom}}


@pytest.mark.parametrize(
    ("code", "metadata", "reason", "expected"),
    [
        (0, None, None, (0, None, False, False, False)),
        (3, None, None, (3, None, False, False, False)),
        (137, None, "OOMKilled", (137, 9, True, False, False)),
        (143, by("stop"), "Error", (143, 15, False, False, True)),
        (7, by("deadline"), "Error", (7, None, False, True, False)),
    ],
)
def test_the_end_of_a_job_is_that_of_its_container(
    code: int, metadata: dict[str, Any] | None, reason: str | None, expected: tuple[Any, ...]
) -> None:
    end = seen(metadata=metadata, phase="Failed", containerStatuses=ended(code, reason=reason))

    flags = (end.exit_code, end.signal, end.out_of_memory, end.timed_out, end.stopped)
    assert (end.phase, flags) == (Phase.exited, expected)
    assert end.ended_at == end.started_at + timedelta(minutes=1) if end.started_at else False


def test_an_attempt_runs_until_its_log_is_read() -> None:
    end = seen(is_drained=False, phase="Succeeded", containerStatuses=ended(0))
    assert (end.phase, end.exit_code) == (Phase.running, None)


@pytest.mark.parametrize(("deadline", "timed_out"), [(60, True), (61, False)])
def test_the_pods_own_deadline_is_a_timeout_if_the_job_ran_until_then(
    deadline: int, *, timed_out: bool
) -> None:
    end = seen(
        phase="Failed",
        reason="DeadlineExceeded",
        startTime=BEGAN,
        deadline=deadline,
        containerStatuses=ended(143, reason="Error"),
    )
    assert end.timed_out is timed_out


def test_an_eviction_is_told_in_the_words_of_the_cluster() -> None:
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi."
    end = seen(phase="Failed", reason="Evicted", message=message, containerStatuses=ended(137))
    assert (end.phase, end.reason) == (Phase.exited, message)


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        (
            'exec: "nonsense": executable file not found in $PATH: unknown',
            127,
            "nonsense could not be started: No such file or directory",
        ),
        (
            'exec: "/etc/passwd": permission denied: unknown',
            126,
            "/etc/passwd could not be started: Permission denied",
        ),
        ("runc create failed", 128, "It could not be started: runc create failed"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(message: str, code: int, reason: str) -> None:
    statuses = ended(128, reason="StartError", message=message)
    end = seen(is_drained=False, phase="Failed", containerStatuses=statuses)
    assert (end.phase, end.exit_code, end.reason) == (Phase.exited, code, reason)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, None),
        (
            {
                "containerStatuses": job(
                    waiting={"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
                )
            },
            "ImagePullBackOff: Back-off pulling image",
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/3 nodes: no cpu."}
                ]
            },
            "the cluster has no room: 0/3 nodes: no cpu.",
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            },
            "it waits in the queue of the cluster",
        ),
    ],
)
def test_a_pod_that_waits_says_for_what(status: dict[str, Any], reason: str | None) -> None:
    assert seen(phase="Pending", **status) == Observation(phase=Phase.pending, reason=reason)


@pytest.mark.parametrize(
    ("seconds", "phase"), [(-30, Phase.running), (30, Phase.unknown), (90, Phase.gone)]
)
def test_a_deleted_pod_on_a_silent_node_is_unknown_before_it_is_gone(
    seconds: int, phase: Phase
) -> None:
    deleted = NOW - timedelta(seconds=seconds)
    running = job(running={"startedAt": BEGAN})
    end = seen(
        metadata={"deletionTimestamp": deleted.isoformat()},
        node="n1",
        phase="Running",
        containerStatuses=running,
    )
    assert end.phase is phase


def test_a_pod_that_was_stopped_before_it_had_a_node_never_began() -> None:
    deleted = by("stop") | {"deletionTimestamp": NOW.isoformat()}
    end = seen(metadata=deleted, phase="Pending")
    assert (end.phase, end.stopped, end.started_at) == (Phase.exited, True, None)


def test_a_pod_that_its_node_refused_is_gone() -> None:
    end = seen(phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
    assert (end.phase, end.reason) == (Phase.gone, "Node didn't have enough resource: cpu")


def conditions(**known: str) -> list[dict[str, Any]]:
    return [{"type": name, "status": status} for name, status in known.items()]


@pytest.mark.parametrize(
    ("known", "phase"),
    [
        pytest.param({"ContainersReady": "True", "Ready": "True"}, Phase.running, id="it answers"),
        pytest.param(
            {"ContainersReady": "True", "Ready": "False"}, Phase.unknown, id="it does not answer"
        ),
        pytest.param(
            {"ContainersReady": "False", "Ready": "False"}, Phase.running, id="a helper has ended"
        ),
    ],
)
def test_a_job_on_a_node_that_does_not_answer_is_unknown(
    known: dict[str, str], phase: Phase
) -> None:
    running = job(running={"startedAt": BEGAN})
    end = seen(
        node="n1", phase="Running", containerStatuses=running, conditions=conditions(**known)
    )
    assert end.phase is phase
    assert end.started_at is not None


def test_a_pod_that_the_cluster_gave_up_is_gone_whatever_its_node_said_last() -> None:
    given_up = {"type": "DisruptionTarget", "status": "True", "message": "PodGC: node not found"}
    end = seen(
        node="n1",
        phase="Failed",
        containerStatuses=job(running={"startedAt": BEGAN}),
        conditions=[given_up],
    )
    assert (end.phase, end.reason) == (Phase.gone, "PodGC: node not found")


def test_a_pod_that_is_evicted_from_a_silent_node_says_why_when_it_is_gone() -> None:
    taint = {"type": "DisruptionTarget", "status": "True", "message": "Taint manager: deleting"}
    end = seen(
        metadata={"deletionTimestamp": (NOW - timedelta(minutes=5)).isoformat()},
        node="n1",
        phase="Running",
        containerStatuses=job(running={"startedAt": BEGAN}),
        conditions=[taint],
    )
    assert (end.phase, end.reason) == (Phase.gone, "its node was lost: Taint manager: deleting")
