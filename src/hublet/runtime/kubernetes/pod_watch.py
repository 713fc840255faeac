"""Watch of a hub's pods: one list, then every change from its version on, kept by bookmarks.

A cluster forgets old versions after some minutes. Where nothing happens for long, its bookmarks
move the version along, so that a watch that breaks off goes on where it was; only when the
version is too old after all, everything is listed again. Events of a pod are not watched: they are
listed now and then while it does not begin.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from hublet.core import clock
from hublet.core.logs import get_logger
from hublet.runtime.kubernetes.cluster import CLUSTER_ERRORS, ClusterConnection, status_of, text_of
from hublet.runtime.kubernetes.pod_status import problem_in

log = get_logger("jobs")

_PAUSE_SECONDS = 2.0
# Before a watch that ended as it should is opened again.
_RENEWAL_SECONDS = 0.2
# Most pods begin sooner: nobody asks for their events.
_PATIENCE_SECONDS = 5.0
# A cluster looks through all events of the namespace for those of one pod.
_EVENTS_SECONDS = 30.0
# A look at the pod itself must not fail because its events are slow.
_EVENTS_TIMEOUT_SECONDS = 2.0


class WatchExpired(Exception):
    """The cluster has forgotten the version: everything must be listed again."""


class WatchRefused(Exception):
    """The cluster ended a watch with an error; the text is its own."""


class WatchPosition:
    """The version up to which the changes of pods are known; None: nothing is known."""

    def __init__(self) -> None:
        self.version: str | None = None

    def read(self, line: bytes) -> str | None:
        """Return the pod that a line tells of; None for a bookmark.

        Raises WatchExpired or WatchRefused.
        """
        event: dict[str, Any] = json.loads(line)
        told: dict[str, Any] = event["object"]
        if event["type"] == "ERROR":
            self._fail(told)
        metadata = told["metadata"]
        self.version = metadata["resourceVersion"]
        return None if event["type"] == "BOOKMARK" else str(metadata["name"])

    def note_failure(self, status: int | None) -> None:
        """Forget the version when the cluster does; after any other failure it is still good."""
        if status == HTTPStatus.GONE:
            self.version = None

    def _fail(self, status: dict[str, Any]) -> None:
        self.version = None
        if status.get("code") == HTTPStatus.GONE:
            raise WatchExpired
        raise WatchRefused(status.get("message") or "it does not say why")


async def watch_pods(cluster: ClusterConnection, labels: dict[str, Any]) -> AsyncIterator[str]:
    """Yield every pod with these labels, then each that changes, for ever."""
    position = WatchPosition()
    while True:
        pause = _PAUSE_SECONDS
        try:
            async for name in _changes(cluster, labels, position):
                yield name
            # The cluster ends every watch after some minutes.
            pause = _RENEWAL_SECONDS
        except WatchExpired:
            pause = _RENEWAL_SECONDS
        except WatchRefused as error:
            log.info("the cluster refused a watch", error=str(error))
        except CLUSTER_ERRORS as error:
            log.info("a watch of the cluster broke off", error=text_of(error))
            position.note_failure(status_of(error))
        await asyncio.sleep(pause)


async def _changes(
    cluster: ClusterConnection, labels: dict[str, Any], position: WatchPosition
) -> AsyncIterator[str]:
    if position.version is None:
        names, position.version = await cluster.list_pods(labels)
        for name in names:
            yield name
    async with cluster.watch(labels, version=position.version) as lines:
        async for line in lines:
            if (changed := position.read(line)) is not None:
                yield changed


@dataclass(slots=True)
class _EventLook:
    """When the events of a pod are asked for next, and what they said last."""

    due: float
    problem: str | None = None


class PodEvents:
    """The problems of pods that are pending for longer than most."""

    def __init__(self) -> None:
        self._looks: dict[str, _EventLook] = {}
        self._is_refused = False

    async def problem_of(self, cluster: ClusterConnection, pod: str) -> str | None:
        """Return what keeps a pending pod from beginning, as far as its events have said."""
        now = clock.monotonic()
        look = self._looks.setdefault(pod, _EventLook(due=now + _PATIENCE_SECONDS))
        if now >= look.due:
            look.due = now + _EVENTS_SECONDS
            try:
                async with asyncio.timeout(_EVENTS_TIMEOUT_SECONDS):
                    look.problem = problem_in(await cluster.list_events(pod))
            except CLUSTER_ERRORS as error:
                self._log_refusal(error)
        return look.problem

    def forget(self, pod: str) -> None:
        self._looks.pop(pod, None)

    def _log_refusal(self, error: BaseException) -> None:
        """Log once that a right is missing: pods run without it."""
        if status_of(error) == HTTPStatus.FORBIDDEN and not self._is_refused:
            self._is_refused = True
            log.warning("events of pods cannot be read: apply the role again", error=text_of(error))
