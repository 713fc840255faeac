"""Kubernetes runner: an attempt is a pod of a cluster, named after job and attempt.

While the hub is down the cluster keeps attempts and what it likes of their logs. Everything that a
worker needs to know of an attempt is in its pod, so any worker can look after it.
"""

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import Pod

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.logs import get_logger
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime import attempt_processes
from hublet.runtime.attempt_folder import note_log_start
from hublet.runtime.errors import CannotAttach, CannotRun, CannotRunYet
from hublet.runtime.kubernetes import log_follower, manifests, pod_status, volumes
from hublet.runtime.kubernetes.cluster import (
    CLUSTER_ERRORS,
    ClusterConnection,
    ignore_status,
    status_of,
    text_of,
)
from hublet.runtime.kubernetes.manifests import PodSettings
from hublet.runtime.kubernetes.pod_exec import PodAttachPoint
from hublet.runtime.kubernetes.pod_status import (
    ObservedPod,
    annotations_of,
    job_state,
    name_of,
    observation_of,
    started_at_of,
    usage_of,
)
from hublet.runtime.kubernetes.pod_watch import PodEvents, watch_pods
from hublet.runtime.records import LaunchOrder, RunnerCapabilities

NAME = "kubernetes"
log = get_logger("jobs")

_NO_HELPER = "it has volumes or is a space, and jobs.helper_image names no image to fill them"
_NO_DEVICES = "its flavor has devices of a machine; a cluster takes gpu=n (jobs.flavors)"
# The order itself is wrong; all else may pass, or an operator mends it.
_WRONG_ORDER = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
)
_PAUSE_SECONDS = 2.0
# Times of a cluster are cut to whole seconds: a job is not cheated of the rest.
_ROUNDING_SECONDS = 1.0
_MOST_READ_BACKS = 5
_PodMetrics = create_namespaced_resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")


class NoCluster(Exception):
    """No cluster is configured, or not rightly; the text says what to do."""


def kubernetes_runner(settings: Settings) -> "KubernetesRunner":
    """Return the runner of a hub; the cluster is that of its service account or KUBECONFIG.

    Raises NoCluster. Blocks.
    """
    jobs = settings.jobs
    try:
        cluster = ClusterConnection(jobs.namespace)
    except (ConfigError, OSError, ValueError, KeyError) as error:
        raise NoCluster(
            f"No cluster can be used: {error}. Set KUBECONFIG, or run the hub in a cluster."
        ) from error
    pods = PodSettings(
        hub=_hub_label(settings),
        data_dir=settings.database.data_dir.absolute(),
        image_map=jobs.images,
        helper_image=jobs.helper_image,
        pull_secrets=jobs.pull_secrets,
        queue=jobs.queue,
        user=jobs.pod_user,
        gpu_resource=jobs.gpu_resource,
        disk_bytes=jobs.pod_disk_bytes,
        network=jobs.network,
        network_allow=jobs.network_allow,
        hub_pods=dict(label.split("=", 1) for label in jobs.hub_pods),
        hub_namespace=cluster.home,
    )
    return KubernetesRunner(cluster=cluster, settings=pods)


def _hub_label(settings: Settings) -> str:
    """Return a label that all nodes of a hub agree on, and no other hub of the namespace has."""
    database = urlsplit(settings.database.url or f"sqlite:{settings.database.data_dir.absolute()}")
    identity = (database.hostname, database.port, database.path, settings.server.base_url)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


@dataclass(slots=True, kw_only=True)
class KubernetesRunner:
    """The handle is the name of the pod; its labels and annotations hold everything else."""

    cluster: ClusterConnection
    settings: PodSettings
    name: str = NAME
    is_local: bool = False
    _followers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _fillers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _filled: set[str] = field(default_factory=set)
    _drained: set[str] = field(default_factory=set)
    _read_backs: dict[str, int] = field(default_factory=dict)
    _events: PodEvents = field(default_factory=PodEvents)
    _changed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _has_policy: bool = False

    async def probe(self) -> RunnerCapabilities:
        try:
            await self._list()
        except CLUSTER_ERRORS as error:
            sentence = (
                f"The cluster {self.cluster.server} cannot be used in the namespace "
                f"{self.cluster.namespace}: {text_of(error)}. Check KUBECONFIG and its rights."
            )
            return RunnerCapabilities(usable=False, sentence=sentence)
        return RunnerCapabilities(
            usable=True,
            sentence=f"Jobs run as pods in the namespace {self.cluster.namespace} of a cluster.",
            limits=True,
            volumes=self.settings.helper_image is not None,
            network_groups=True,
            ssh=True,
        )

    async def launch(self, order: LaunchOrder) -> str:
        if (order.binds or order.content is not None) and self.settings.helper_image is None:
            raise CannotRun(_NO_HELPER)
        if order.devices:
            raise CannotRun(_NO_DEVICES)
        await asyncio.to_thread(note_log_start, order.folder, order.log)
        name = manifests.name_of(order)
        try:
            if not self._has_policy:
                await self.cluster.apply_policy(self.settings)
                self._has_policy = True
            await self.cluster.create_attempt(order, self.settings)
        except CLUSTER_ERRORS as error:
            if status_of(error) in _WRONG_ORDER:
                await self.remove(name)
                raise CannotRun(f"the cluster says: {text_of(error)}") from error
            raise CannotRunYet(f"the cluster says: {text_of(error)}") from error
        return name

    async def inspect(self, handle: str) -> Observation:
        try:
            pod = await self._get(handle)
        except CLUSTER_ERRORS as error:
            if status_of(error) == HTTPStatus.NOT_FOUND:
                return Observation(phase=Phase.gone)
            return Observation(phase=Phase.unknown, reason=text_of(error))
        observation = observation_of(self._observed(handle, pod))
        if pod_status.is_filling(pod) and handle not in {*self._fillers, *self._filled}:
            if not await asyncio.to_thread(volumes.are_here, self._volumes(pod)):
                return replace(observation, lacks_volumes=True)
            self._fillers[handle] = asyncio.create_task(self._fill(handle, pod))
        has_begun = observation.phase is Phase.running and observation.started_at is not None
        if has_begun and handle not in self._followers:
            self._followers[handle] = asyncio.create_task(self._follow_attempt(handle, pod))
        if observation.phase is Phase.pending and observation.reason is None:
            problem = await self._events.problem_of(self.cluster, handle)
            return replace(observation, reason=problem)
        return observation

    def _observed(self, handle: str, pod: Pod) -> ObservedPod:
        return ObservedPod(
            pod=pod,
            is_drained=handle in self._drained,
            now=clock.now() - clock.offset(),
            offset=clock.offset(),
        )

    async def watch(self) -> AsyncIterator[str]:
        watching = asyncio.create_task(self._watch(), name="kubernetes-watch")
        # Who waits for the next change learns that there will be none.
        watching.add_done_callback(lambda _: self._changed.put_nowait(""))
        try:
            while True:
                if name := await self._changed.get():
                    yield name
                elif watching.done():
                    watching.result()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Queue every pod, then each that changes."""
        async for name in watch_pods(self.cluster, self._labels()):
            self._changed.put_nowait(name)

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        with ignore_status(HTTPStatus.NOT_FOUND):
            await self._stop(await self._get(handle), manifests.STOPPED, grace_seconds)

    async def _stop(self, pod: Pod, ended_by: str, grace_seconds: float) -> None:
        state, annotations = job_state(pod), annotations_of(pod)
        if state is not None and state.terminated is not None:
            return
        if manifests.ENDED_BY not in annotations:
            patch = manifests.stop_patch(ended_by)
            await self.cluster.api.patch(Pod, name_of(pod), patch)
        has_node = pod.spec is not None and bool(pod.spec.nodeName)
        is_shorter = grace_seconds < float(annotations.get(manifests.GRACE, 0))
        if not has_node or is_shorter:
            # The grace of a pod cannot be changed but by its deletion; the finalizer keeps it.
            grace = max(math.ceil(grace_seconds), 1) if has_node else 0
            await self.cluster.api.delete(Pod, name_of(pod), grace_period=grace)

    async def remove(self, handle: str) -> None:
        for tasks in (self._followers, self._fillers):
            if (task := tasks.pop(handle, None)) is not None:
                task.cancel()
        for known in (self._filled, self._drained):
            known.discard(handle)
        self._read_backs.pop(handle, None)
        self._events.forget(handle)
        with ignore_status(HTTPStatus.NOT_FOUND):
            pod = await self._get(handle)
            await self.cluster.api.delete(Pod, handle, grace_period=0)
            gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": [manifests.FINALIZER]}}
            await self.cluster.api.patch(Pod, handle, gone)
            folder = self._path(pod, manifests.FOLDER)
            await asyncio.to_thread(attempt_processes.remove_folder, folder)

    async def handles(self) -> list[str]:
        return sorted(name_of(pod) for pod in await self._list())

    async def tidy_up(self) -> None:
        """Do nothing: the cluster removes what pods owned, and nodes prune their images."""

    async def usage(self, handle: str) -> Usage | None:
        """Return what the cluster measured; None where it has no metrics server."""
        try:
            metrics = await self.cluster.api.get(_PodMetrics, handle)
            pod = await self._get(handle)
        except CLUSTER_ERRORS:
            return None
        state = job_state(pod)
        if state is None or state.running is None:
            return None
        return usage_of(cast("Any", metrics).to_dict())

    async def attach_point(self, handle: str) -> PodAttachPoint | None:
        with ignore_status(HTTPStatus.NOT_FOUND):
            state = job_state(await self._get(handle))
            if state is not None and state.running is not None:
                return PodAttachPoint(
                    cluster=self.cluster,
                    pod=handle,
                    hub=self.settings.hub,
                    has_addresses=bool(self.settings.hub_pods),
                )
        return None

    async def close(self) -> None:
        """Disconnect from the cluster; pods go on."""
        tasks = [*self._followers.values(), *self._fillers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.cluster.close()

    async def _fill(self, handle: str, pod: Pod) -> None:
        """Write the volumes of a pod; what fails is tried again at the next inspection."""
        try:
            await volumes.fill(self.cluster, handle, self._volumes(pod))
            # Its status lags behind.
            self._filled.add(handle)
        except (CannotAttach, *CLUSTER_ERRORS) as error:
            log.warning("the volumes of a pod were not written", pod=handle, error=text_of(error))
            await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._fillers.pop(handle, None)
            self._changed.put_nowait(handle)

    async def _follow_attempt(self, handle: str, pod: Pod) -> None:
        """Copy the log of an attempt until it ends, then its volumes; stop it at its deadline."""
        deadline = asyncio.create_task(self._keep_deadline(handle, pod))
        try:
            await self._follow(handle, pod)
            await self._read_back(handle, pod)
            self._drained.add(handle)
        except (CannotAttach, *CLUSTER_ERRORS) as error:
            # The next inspection starts another follower.
            log.warning("the log of a pod broke off", pod=handle, error=text_of(error))
            await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            deadline.cancel()
            self._followers.pop(handle, None)
            self._changed.put_nowait(handle)

    async def _follow(self, handle: str, pod: Pod) -> None:
        await log_follower.follow(
            partial(self.cluster.log, handle),
            folder=self._path(pod, manifests.FOLDER),
            log=self._path(pod, manifests.LOG),
            limit=int(annotations_of(pod)[manifests.LOG_BYTES]),
            started=started_at_of(pod),
            is_over=self._is_over(handle),
        )

    def _is_over(self, handle: str) -> Callable[[], Awaitable[bool]]:
        async def is_over() -> bool:
            state = job_state(await self._get(handle))
            return state is not None and state.terminated is not None

        return is_over

    async def _read_back(self, handle: str, pod: Pod) -> None:
        """Read the volumes that a job may write to; what cannot be read is given up after a while."""
        tries = self._read_backs[handle] = self._read_backs.get(handle, 0) + 1
        for volume in self._volumes(pod):
            if not volume.is_written:
                continue
            try:
                await volumes.read_back(self.cluster, handle, volume)
            except (CannotAttach, *CLUSTER_ERRORS) as error:
                if tries < _MOST_READ_BACKS:
                    raise
                log.warning("a volume of a pod is lost", pod=handle, error=text_of(error))
                lost = f"===== The cluster lost one of its volumes: {text_of(error)} ====="
                await asyncio.to_thread(_append_line, self._path(pod, manifests.LOG), lost)
                await asyncio.to_thread(volumes.forget, volume)

    async def _keep_deadline(self, handle: str, pod: Pod) -> None:
        annotations = annotations_of(pod)
        passed = (clock.now() - clock.offset() - started_at_of(pod)).total_seconds()
        limit = float(annotations[manifests.TIMEOUT]) + _ROUNDING_SECONDS
        await asyncio.sleep(max(limit - passed, 0))
        while True:
            try:
                grace = float(annotations[manifests.GRACE])
                await self._stop(await self._get(handle), manifests.TIMED_OUT, grace)
            except CLUSTER_ERRORS as error:
                log.warning("a pod could not be stopped", pod=handle, error=text_of(error))
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    def _volumes(self, pod: Pod) -> list[volumes.PodVolume]:
        return volumes.volumes_of(annotations_of(pod)[manifests.VOLUMES], self.settings.data_dir)

    def _path(self, pod: Pod, annotation: str) -> Path:
        return self.settings.data_dir / annotations_of(pod)[annotation]

    def _labels(self) -> dict[str, Any]:
        return {manifests.HUB: self.settings.hub}

    async def _get(self, handle: str) -> Pod:
        return await self.cluster.api.get(Pod, handle)

    async def _list(self) -> list[Pod]:
        labels = self._labels()
        return [pod async for pod in self.cluster.api.list(Pod, labels=labels)]


def _append_line(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{clock.micros()} {' '.join(text.split())}\n")
