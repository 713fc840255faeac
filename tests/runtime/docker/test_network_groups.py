"""Network groups of the docker runner, as an engine hears of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hublet.runtime.docker.containers import config_of, group_of
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.records import GroupMembership, LaunchOrder
from patience import SOON_SECONDS
from runtime.attempts import an_order

aiodocker = pytest.importorskip("aiodocker", reason="hublet[docker] is not installed")

from aiohttp import web  # noqa: E402 - only where aiodocker is

from hublet.runtime.docker.runner import DockerRunner  # noqa: E402 - as above

GROUP = GroupMembership(key="ada//train", names=("g123-train", "a123-leader", "a123-worker"))


class Engine:
    """Speaks as much of the Engine API as groups need; nothing runs in it."""

    def __init__(self) -> None:
        self.networks: dict[str, dict[str, Any]] = {}
        self.containers: dict[str, dict[str, Any]] = {}
        self.cannot_start = False
        # Images that are elsewhere, and whether they can be had from there.
        self.missing: set[str] = set()
        self.registry: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.components: list[dict[str, str]] = [{"Name": "Engine"}]

    def application(self) -> web.Application:
        app = web.Application()
        path = "/{version}"
        app.add_routes(
            [
                web.get("/version", self.version),
                web.get(f"{path}/version", self.version),
                web.post(f"{path}/networks/create", self.create_network),
                web.get(f"{path}/networks", self.list_networks),
                web.get(f"{path}/networks/{{id}}", self.show_network),
                web.delete(f"{path}/networks/{{id}}", self.delete_network),
                web.post(f"{path}/images/create", self.pull),
                web.post(f"{path}/containers/create", self.create),
                web.get(f"{path}/containers/json", self.list_containers),
                web.get(f"{path}/containers/{{id}}/json", self.show),
                web.post(f"{path}/containers/{{id}}/start", self.start),
                web.delete(f"{path}/containers/{{id}}", self.delete),
            ]
        )
        return app

    async def version(self, _: web.Request) -> web.Response:
        about = {"Version": "20.10", "ApiVersion": "1.41", "Components": self.components}
        return web.json_response(about)

    async def pull(self, request: web.Request) -> web.Response:
        if not await self.registry:
            return web.json_response({"message": "no such image"}, status=404)
        self.missing.discard(request.query["fromImage"])
        return web.json_response({"status": "Pulled"})

    async def create_network(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if asked["Name"] in self.networks:
            return web.json_response({"message": "it exists"}, status=409)
        self.networks[asked["Name"]] = asked
        return web.json_response({"Id": asked["Name"]}, status=201)

    async def list_networks(self, request: web.Request) -> web.Response:
        found = _labelled(self.networks, request)
        return web.json_response([{"Id": name, "Name": name} for name in found])

    async def show_network(self, request: web.Request) -> web.Response:
        return web.json_response({"Id": request.match_info["id"]})

    async def delete_network(self, request: web.Request) -> web.Response:
        del self.networks[request.match_info["id"]]
        return web.Response(status=204)

    async def create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if asked["Image"] in self.missing:
            return web.json_response({"message": "no such image"}, status=404)
        self.containers[request.query["name"]] = asked
        return web.json_response({"Id": request.query["name"]}, status=201)

    async def list_containers(self, request: web.Request) -> web.Response:
        found = _labelled(self.containers, request)
        return web.json_response([{"Id": name, "Names": [f"/{name}"]} for name in found])

    async def show(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.containers:
            return web.json_response({"message": "no such container"}, status=404)
        times = {"StartedAt": "0001-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z"}
        state = {"Status": "created", "ExitCode": 0, **times}
        return web.json_response({"Id": name, "State": state, "Config": self.containers[name]})

    async def start(self, request: web.Request) -> web.Response:
        mode = self.containers[request.match_info["id"]]["HostConfig"]["NetworkMode"]
        if self.cannot_start or (mode.startswith("hublet-") and mode not in self.networks):
            return web.json_response({"message": "no network"}, status=500)
        return web.Response(status=204)

    async def delete(self, request: web.Request) -> web.Response:
        del self.containers[request.match_info["id"]]
        return web.Response(status=204)


def _labelled(things: dict[str, dict[str, Any]], request: web.Request) -> list[str]:
    [label] = json.loads(request.query["filters"])["label"]
    name, _, value = label.partition("=")
    return [each for each, about in things.items() if about["Labels"].get(name) == value]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    engine = Engine()
    serving = web.AppRunner(engine.application())
    await serving.setup()
    await web.UnixSite(serving, str(tmp_path / "engine.sock")).start()
    yield engine
    await serving.cleanup()


@pytest.fixture
async def runner(engine: Engine, tmp_path: Path) -> AsyncIterator[DockerRunner]:
    assert not engine.networks
    runner = a_runner(tmp_path)
    yield runner
    await runner.close()


def a_runner(tmp_path: Path, *, hub: str = "h", network: bool = False) -> DockerRunner:
    url = f"unix://{tmp_path}/engine.sock"
    return DockerRunner(
        engine=aiodocker.Docker(url=url), hub=hub, data_dir=tmp_path, network=network
    )


def network_of(order: LaunchOrder) -> str:
    name = group_of(order, hub="h")
    assert name is not None
    return name


async def test_an_engine_has_network_groups(runner: DockerRunner) -> None:
    assert (await runner.probe()).network_groups


async def test_a_group_is_a_network_that_its_first_member_makes_and_its_last_removes(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    orders = [an_order(tmp_path, "true", group=GROUP) for _ in range(2)]
    name = network_of(orders[0])
    first, second = [await runner.launch(order) for order in orders]

    assert engine.networks == {
        name: {
            "Name": name,
            "Driver": "bridge",
            "Internal": True,
            "Options": {"com.docker.network.bridge.inhibit_ipv4": "true"},
            "CheckDuplicate": True,
            "Labels": {"hublet.hub": "h"},
        }
    }
    asked = engine.containers[first]
    assert asked["HostConfig"]["NetworkMode"] == name
    assert asked["NetworkingConfig"] == {"EndpointsConfig": {name: {"Aliases": list(GROUP.names)}}}
    await runner.remove(first)
    assert list(engine.networks) == [name]
    await runner.remove(second)
    assert engine.networks == {}


async def test_with_a_way_out_the_network_of_a_group_has_it_too(
    engine: Engine, tmp_path: Path
) -> None:
    runner = a_runner(tmp_path, network=True)
    await runner.launch(an_order(tmp_path, "true", group=GROUP))
    await runner.close()

    [network] = engine.networks.values()
    assert (network["Internal"], network["Options"]) == (False, {})


async def test_podman_has_groups_only_where_jobs_may_reach_the_machine_anyway(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    engine.components = [{"Name": "Podman Engine"}]
    outward = a_runner(tmp_path, network=True)

    closed, opened = await runner.probe(), await outward.probe()
    await outward.close()

    assert (closed.usable, closed.network_groups, opened.network_groups) == (True, False, True)
    assert closed.without_groups == (
        "Podman lets the jobs of a network group reach this machine, though jobs.network is none."
    )


async def test_no_group_waits_for_the_image_of_another(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    engine.missing = {"far"}
    slow = an_order(tmp_path, "true", group=GROUP, image="far")
    other = an_order(tmp_path, "true", group=GroupMembership(key="x", names=("x",)))
    pulling = asyncio.create_task(runner.launch(slow))
    async with asyncio.timeout(SOON_SECONDS):
        while not engine.networks:
            await asyncio.sleep(0.01)
        begun = await runner.launch(other)
        # Whoever looks around meanwhile finds a network without members.
        assert await runner.handles() == [begun]
        assert len(engine.networks) == 1

        engine.registry.set_result(True)
        await pulling

    assert len(engine.networks) == len(engine.containers) == 2


async def test_an_image_that_nobody_has_leaves_no_network(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    engine.missing = {"far"}
    engine.registry.set_result(False)

    with pytest.raises(CannotRun, match="no such image"):
        await runner.launch(an_order(tmp_path, "true", group=GROUP, image="far"))

    assert (engine.networks, engine.containers) == ({}, {})


async def test_a_group_whose_only_member_cannot_begin_leaves_no_network(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    engine.cannot_start = True

    with pytest.raises(CannotRunYet):
        await runner.launch(an_order(tmp_path, "true", group=GROUP))

    assert (engine.networks, engine.containers) == ({}, {})


async def test_networks_that_a_killed_hub_left_are_removed_and_those_of_others_are_not(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    theirs = a_runner(tmp_path, hub="another")
    await theirs.launch(an_order(tmp_path, "true", group=GROUP))
    kept = await runner.launch(an_order(tmp_path, "true", group=GROUP))
    gone = await runner.launch(
        an_order(tmp_path, "true", group=GroupMembership(key="x", names=("x",)))
    )
    del engine.containers[gone]
    assert len(engine.networks) == 3

    assert await runner.handles() == [kept]
    await theirs.close()

    assert len(engine.networks) == 2


def test_groups_of_other_keys_and_other_hubs_have_other_networks(tmp_path: Path) -> None:
    order = an_order(tmp_path, "true", group=GROUP)
    other = an_order(tmp_path, "true", group=GroupMembership(key="grace//train", names=GROUP.names))

    names = {group_of(order, hub="h"), group_of(other, hub="h"), group_of(order, hub="i")}

    assert len(names) == 3
    assert group_of(an_order(tmp_path, "true"), hub="h") is None
    alone = config_of(
        an_order(tmp_path, "true"), image="x", hub="h", network=False, data_dir=tmp_path
    )
    assert alone["HostConfig"]["NetworkMode"] == "none"
    assert "NetworkingConfig" not in alone
