"""Observation of an attempt, decided from the status and the events of its pod; without cluster."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from lightkube.models.core_v1 import ContainerState, ContainerStateTerminated, ContainerStatus
from lightkube.resources.core_v1 import Event, Pod
from lightkube.utils.quantity import parse_quantity

from hublet.core import clock
from hublet.core.dataclasses import dataclass
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime.kubernetes.manifests import (
    ENDED_BY,
    FILL_CONTAINER,
    JOB_CONTAINER,
    STOPPED,
    TIMED_OUT,
)

_SIGNALS = range(129, 193)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
# A container that never ran; its exit code is the runtime's.
_START_FAILURES = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
# After the end of a deleted pod's grace its node may be slow to say so.
_LOST_AFTER = timedelta(seconds=60)
_GATED = "SchedulingGated"
# Messages of events name addresses and folders of the cluster: who runs a job reads our sentences.
_MOUNT = "its node cannot mount a volume"
_PROBLEMS = {
    "FailedAttachVolume": "the cluster cannot attach a volume to its node",
    "FailedCreatePodContainer": "its node cannot make its container",
    "FailedCreatePodSandBox": "its node cannot set up its sandbox or its network",
    "FailedMapVolume": _MOUNT,
    "FailedMount": _MOUNT,
    "FailedPrepareDynamicResources": "its node cannot prepare its devices",
    "NetworkNotReady": "the network of its node is not ready",
}
# They come only after volumes and sandbox. Others, such as SandboxChanged, alternate with a problem.
_PROGRESS = frozenset({"Pulling", "Pulled", "Created", "Started"})
_MISSING_PROGRAM = re.compile(r'exec: "([^"]+)"|exec (\S+?):? ')


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod, with what the hub knows beside its status."""

    pod: Pod
    # Whether its log and its volumes were read to their end.
    is_drained: bool
    now: datetime
    # Between the clock of the hub and that of the cluster, in test mode.
    offset: timedelta = timedelta()

    @property
    def ended_by(self) -> str | None:
        return annotations_of(self.pod).get(ENDED_BY)

    def hub_time(self, moment: datetime | None) -> datetime | None:
        return None if moment is None else moment + self.offset


def observation_of(observed: ObservedPod) -> Observation:
    """Return the observation; an attempt has exited only when it is drained."""
    pod = observed.pod
    state = job_state(pod)
    if state is not None and state.terminated is not None:
        if observed.is_drained or state.terminated.reason in _START_FAILURES:
            return _exited(observed, state.terminated)
        started = observed.hub_time(state.terminated.startedAt)
        return Observation(phase=Phase.running, started_at=started)
    if (lost := _lost(observed)) is not None:
        return lost
    if state is not None and state.running is not None and not _is_over(pod):
        started = observed.hub_time(state.running.startedAt)
        is_silent = _is_node_silent(pod)
        return Observation(
            phase=Phase.unknown if is_silent else Phase.running,
            started_at=started,
            reason="its node does not answer" if is_silent else None,
        )
    if pod.status is not None and pod.status.phase in {"Failed", "Succeeded"}:
        return _ended_without_state(observed)
    return Observation(phase=Phase.pending, reason=pending_reason(pod))


def job_state(pod: Pod) -> ContainerState | None:
    """Return the state of the job's own container; None: there is none yet."""
    found = _container(pod, JOB_CONTAINER)
    return None if found is None else found.state


def is_filling(pod: Pod) -> bool:
    """Tell whether the container that takes the volumes runs."""
    found = _container(pod, FILL_CONTAINER)
    return found is not None and found.state is not None and found.state.running is not None


def _container(pod: Pod, name: str) -> ContainerStatus | None:
    status = pod.status
    if status is None:
        return None
    statuses = [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]
    return next((each for each in statuses if each.name == name), None)


def _exited(observed: ObservedPod, ended: ContainerStateTerminated) -> Observation:
    never_ran = ended.reason in _START_FAILURES
    code, reason = (
        _start_failure(ended) if never_ran else (ended.exitCode, _pod_message(observed.pod))
    )
    started_at, ended_at = observed.hub_time(ended.startedAt), observed.hub_time(ended.finishedAt)
    return Observation(
        phase=Phase.exited,
        started_at=started_at,
        # Times of a cluster have whole seconds.
        ended_at=ended_at if ended_at is None or started_at is None else max(started_at, ended_at),
        exit_code=code,
        signal=code - 128 if code in _SIGNALS else None,
        out_of_memory=ended.reason == "OOMKilled",
        timed_out=_is_timed_out(observed),
        stopped=observed.ended_by == STOPPED,
        reason=reason,
    )


def _is_timed_out(observed: ObservedPod) -> bool:
    """Tell whether the deadline ended it: the hub's, or the pod's own while the hub was away."""
    if observed.ended_by is not None:
        return observed.ended_by == TIMED_OUT
    spec, status = observed.pod.spec, observed.pod.status
    if spec is None or status is None or status.reason != "DeadlineExceeded":
        return False
    # A node that restarts gives this reason even to a pod that ended long before its deadline.
    state = job_state(observed.pod)
    ended_at = state.terminated.finishedAt if state and state.terminated else None
    if ended_at is None or status.startTime is None or spec.activeDeadlineSeconds is None:
        return True
    return ended_at >= status.startTime + timedelta(seconds=spec.activeDeadlineSeconds)


def _pod_message(pod: Pod) -> str | None:
    """Return why the cluster ended a pod, such as an eviction; None: it ended by itself."""
    status = pod.status
    if status is None or not status.reason or status.reason == "DeadlineExceeded":
        return None
    return status.message or status.reason


def _start_failure(ended: ContainerStateTerminated) -> tuple[int, str]:
    """Return the exit code of a shell for a program that cannot be started, and a sentence."""
    message = ended.message or "the cluster does not say why"
    match = _MISSING_PROGRAM.search(message)
    program = (match[1] or match[2]).strip('"') if match else None
    if program and ("not found" in message or "no such file" in message):
        return _NOT_FOUND, f"{program} could not be started: No such file or directory"
    if program and "permission denied" in message:
        return _NOT_EXECUTABLE, f"{program} could not be started: Permission denied"
    return ended.exitCode, f"It could not be started: {message}"


def _lost(observed: ObservedPod) -> Observation | None:
    """Return what a deleted pod says whose node does not: unknown for a while, then gone."""
    metadata = observed.pod.metadata
    deleted_at = None if metadata is None else metadata.deletionTimestamp
    if deleted_at is None:
        return None
    if job_state(observed.pod) is None and not _node(observed.pod):
        # It never had a node, so nothing of it runs anywhere.
        is_ours = observed.ended_by is not None
        return Observation(
            phase=Phase.exited if is_ours else Phase.gone,
            stopped=observed.ended_by == STOPPED,
            timed_out=observed.ended_by == TIMED_OUT,
            reason=None if is_ours else "its pod was deleted before it began",
        )
    if observed.now < deleted_at:
        return None
    if observed.now < deleted_at + _LOST_AFTER:
        return Observation(
            phase=Phase.unknown, reason="its pod was deleted, and its node is silent"
        )
    why = _disruption(observed.pod)
    return Observation(
        phase=Phase.gone, reason=f"its node was lost: {why}" if why else "its node was lost"
    )


def _is_over(pod: Pod) -> bool:
    """Tell whether the cluster has given up a pod, whatever its node said last of the job.

    It does so when the node was removed, or declared out of service: nothing runs there any more.
    """
    return pod.status is not None and pod.status.phase in {"Failed", "Succeeded"}


def _is_node_silent(pod: Pod) -> bool:
    """Tell whether a node has stopped to answer: only then a pod is not ready whose containers are."""
    conditions = (pod.status.conditions if pod.status is not None else None) or ()
    known = {each.type: each.status for each in conditions}
    return known.get("ContainersReady") == "True" and known.get("Ready") == "False"


def _disruption(pod: Pod) -> str | None:
    """Return why the cluster itself ends a pod."""
    conditions = (pod.status.conditions if pod.status is not None else None) or ()
    for each in conditions:
        if each.type == "DisruptionTarget" and each.status == "True":
            return each.message or each.reason
    return None


def _end_message(pod: Pod) -> str | None:
    return _pod_message(pod) or _disruption(pod)


def _node(pod: Pod) -> str | None:
    return None if pod.spec is None else pod.spec.nodeName


def _ended_without_state(observed: ObservedPod) -> Observation:
    """Return the end of a pod whose job never ran: evicted, refused by its node, or stopped."""
    if observed.ended_by is not None or _is_timed_out(observed):
        return Observation(
            phase=Phase.exited,
            stopped=observed.ended_by == STOPPED,
            timed_out=_is_timed_out(observed),
        )
    return Observation(phase=Phase.gone, reason=_end_message(observed.pod) or "its pod failed")


def pending_reason(pod: Pod) -> str | None:
    """Return why a pod does not run yet, in the words of the cluster; None: it is on its way."""
    status = pod.status
    if status is None:
        return None
    for each in (*(status.initContainerStatuses or ()), *(status.containerStatuses or ())):
        waiting = each.state.waiting if each.state is not None else None
        if waiting is not None and waiting.message:
            return f"{waiting.reason}: {waiting.message}" if waiting.reason else waiting.message
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status != "True":
            if condition.reason == _GATED:
                return "it waits in the queue of the cluster"
            return f"the cluster has no room: {condition.message}" if condition.message else None
    return None


def problem_in(events: Iterable[Event]) -> str | None:
    """Return what keeps a pod from beginning; None: nothing is known, or it went on since."""
    known = [each for each in events if each.reason in {*_PROBLEMS, *_PROGRESS}]
    # Most of their times are whole seconds.
    last = max(known, key=lambda each: (_time_of(each), each.reason in _PROGRESS), default=None)
    if last is None or last.reason is None or last.reason in _PROGRESS:
        return None
    return f"{last.reason}: {_PROBLEMS[last.reason]}"


def _time_of(event: Event) -> datetime:
    """Return when an event happened last; which field says so depends on who wrote it."""
    repeated = event.series.lastObservedTime if event.series is not None else None
    times = (repeated, event.lastTimestamp, event.eventTime, event.firstTimestamp)
    return max((each for each in times if each is not None), default=clock.from_micros(0))


def usage_of(metrics: dict[str, Any]) -> Usage:
    """Return what the containers of a pod use together, as the metrics server measured it."""
    used = [each["usage"] for each in metrics.get("containers") or ()]
    cores = sum(float(parse_quantity(each["cpu"]) or 0) for each in used)
    memory = sum(int(parse_quantity(each["memory"]) or 0) for each in used)
    return Usage(cpu_millicores=round(1000 * cores), memory_bytes=memory)


def annotations_of(pod: Pod) -> dict[str, str]:
    return (pod.metadata.annotations if pod.metadata is not None else None) or {}


def name_of(pod: Pod) -> str:
    return (pod.metadata.name if pod.metadata is not None else None) or ""


def started_at_of(pod: Pod) -> datetime:
    state = job_state(pod)
    known = state and (state.running or state.terminated)
    return (known.startedAt if known else None) or clock.now() - clock.offset()
