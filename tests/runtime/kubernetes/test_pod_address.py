"""Ports of a pod at its address, where the hub runs in the cluster; else through the API server."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from lightkube.resources.core_v1 import Pod

from hublet.core.config.kinds import CLUSTER_LABELS
from hublet.runtime.kubernetes import pod_exec
from hublet.runtime.kubernetes.cluster import ClusterConnection, resource_of
from hublet.runtime.kubernetes.pod_exec import PodAttachPoint


class _Api:
    async def get(self, _kind: type[Any], _name: str) -> Pod:
        return resource_of(Pod, {"status": {"podIP": "127.0.0.1"}})


class _Cluster:
    api = _Api()


@pytest.fixture
def forwarded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every port that is reached through the API server in this test."""
    asked: list[tuple[str, int]] = []

    async def forward(_cluster: Any, pod: str, port: int) -> socket.socket:
        asked.append((pod, port))
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours

    monkeypatch.setattr(pod_exec, "_forward", forward)
    return asked


@pytest.fixture
async def open_port() -> AsyncIterator[int]:
    def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def a_point(*, has_addresses: bool) -> PodAttachPoint:
    cluster = cast("ClusterConnection", _Cluster())
    return PodAttachPoint(cluster=cluster, pod="p", hub="h", has_addresses=has_addresses)


async def test_a_port_is_reached_at_the_address_of_the_pod(
    open_port: int, forwarded: list[tuple[str, int]]
) -> None:
    with await a_point(has_addresses=True).dial(open_port) as made:
        assert await asyncio.get_running_loop().sock_recv(made, 5) == b"hello"
    assert forwarded == []


async def test_what_listens_on_loopback_only_is_reached_through_the_cluster(
    forwarded: list[tuple[str, int]],
) -> None:
    (await a_point(has_addresses=True).dial(1)).close()
    assert forwarded == [("p", 1)]


async def test_a_hub_outside_of_the_cluster_asks_for_no_address(
    open_port: int, forwarded: list[tuple[str, int]]
) -> None:
    (await a_point(has_addresses=False).dial(open_port)).close()
    assert forwarded == [("p", open_port)]


@pytest.mark.parametrize("text", ["hublet", "app=", "=hublet", "app=a b", "app=a=b"])
def test_wrong_labels_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        CLUSTER_LABELS.read(text)


def test_labels_are_read_as_they_stand() -> None:
    assert CLUSTER_LABELS.read("app.kubernetes.io/name=hublet,tier=api") == (
        "app.kubernetes.io/name=hublet",
        "tier=api",
    )
