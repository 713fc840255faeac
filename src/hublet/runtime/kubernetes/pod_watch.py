"""Watch of a hub's pods: one list, then every change from its version on, kept by bookmarks.

A cluster forgets old versions after some minutes. Where nothing happens for long, its bookmarks
move the version along, so that a watch that breaks off goes on where it was; only when the
version is too old after all, everything is listed again.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from hublet.core.logs import get_logger
from hublet.runtime.kubernetes.cluster import CLUSTER_ERRORS, ClusterConnection, status_of, text_of

log = get_logger("jobs")

_PAUSE_SECONDS = 2.0
# Before a watch that ended as it should is opened again.
_RENEWAL_SECONDS = 0.2


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
