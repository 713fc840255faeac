"""The watch of pods: its position, bookmarks, and what is listed again when."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from hublet.runtime.kubernetes import pod_watch
from hublet.runtime.kubernetes.cluster import ClusterConnection
from hublet.runtime.kubernetes.manifests import PodSettings
from hublet.runtime.kubernetes.pod_watch import WatchExpired, WatchPosition, WatchRefused
from hublet.runtime.kubernetes.runner import KubernetesRunner


def line(kind: str, version: str, name: str = "") -> bytes:
    metadata = {"resourceVersion": version} | ({"name": name} if name else {})
    return json.dumps({"type": kind, "object": {"kind": "Pod", "metadata": metadata}}).encode()


def failure(code: int) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"code": code, "message": "no"}}).encode()


class ScriptedCluster:
    """Answers each list and each watch in turn, and records the versions that watches ask for."""

    def __init__(self, *watches: list[bytes] | Exception) -> None:
        self.watches = list(watches)
        self.versions: list[str] = []
        self.lists = 0

    async def list_pods(self, _labels: dict[str, Any]) -> tuple[list[str], str]:
        self.lists += 1
        return [f"listed-{self.lists}"], f"{self.lists}00"

    @asynccontextmanager
    async def watch(
        self, _labels: dict[str, Any], *, version: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.versions.append(version)
        if not self.watches:
            raise EOFError
        told = self.watches.pop(0)
        if isinstance(told, Exception):
            raise told

        async def lines() -> AsyncIterator[bytes]:
            for each in told:
                yield each

        yield lines()


async def names_from(cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a watch yields until the script is over."""
    monkeypatch.setattr(pod_watch, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(pod_watch, "_RENEWAL_SECONDS", 0)
    names: list[str] = []
    with suppress(EOFError):
        async for name in pod_watch.watch_pods(cast("ClusterConnection", cluster), {}):
            names.append(name)  # noqa: PERF401 - the end is an error.
    return names


def test_a_bookmark_moves_the_position_and_names_no_pod() -> None:
    position = WatchPosition()

    assert position.read(line("MODIFIED", "7", "a")) == "a"
    assert position.read(line("BOOKMARK", "900")) is None
    assert position.version == "900"


@pytest.mark.parametrize(("code", "error"), [(410, WatchExpired), (500, WatchRefused)])
def test_an_error_in_a_watch_forgets_the_position(code: int, error: type[Exception]) -> None:
    position = WatchPosition()
    position.version = "7"

    with pytest.raises(error):
        position.read(failure(code))
    assert position.version is None


async def test_a_watch_that_ends_goes_on_from_its_bookmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ScriptedCluster(
        [line("ADDED", "101", "a"), line("BOOKMARK", "170")], [line("DELETED", "180", "b")]
    )

    assert await names_from(cluster, monkeypatch) == ["listed-1", "a", "b"]
    assert (cluster.lists, cluster.versions) == (1, ["100", "170", "180"])


async def test_a_connection_that_breaks_lists_nothing_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ScriptedCluster([line("ADDED", "101", "a")], aiohttp.ClientConnectionError("cut"))

    assert await names_from(cluster, monkeypatch) == ["listed-1", "a"]
    assert (cluster.lists, cluster.versions) == (1, ["100", "101", "101"])


def gone() -> aiohttp.ClientResponseError:
    return aiohttp.ClientResponseError(cast("Any", None), (), status=410, message="too old")


@pytest.mark.parametrize(
    "expiry",
    [
        pytest.param([failure(410)], id="told in the watch"),
        pytest.param(gone(), id="told as the answer"),
    ],
)
async def test_a_version_that_is_too_old_lists_everything_again(
    monkeypatch: pytest.MonkeyPatch, expiry: list[bytes] | Exception
) -> None:
    cluster = ScriptedCluster(expiry, [line("ADDED", "201", "b")])

    assert await names_from(cluster, monkeypatch) == ["listed-1", "listed-2", "b"]
    assert (cluster.lists, cluster.versions) == (2, ["100", "200", "201"])


async def test_who_waits_for_changes_hears_that_a_watch_failed(tmp_path: Path) -> None:
    cluster = cast("ClusterConnection", ScriptedCluster([b"<html>no answer of a cluster</html>"]))
    runner = KubernetesRunner(cluster=cluster, settings=PodSettings(hub="h", data_dir=tmp_path))

    names = runner.watch()

    assert await anext(names) == "listed-1"
    with pytest.raises(json.JSONDecodeError):
        await anext(names)
