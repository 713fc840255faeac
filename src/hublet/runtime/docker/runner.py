"""Docker runner: an attempt is a container of a Docker engine, or of podman's socket.

While the hub is down the engine keeps attempts and their output. The deadline is the hub's: an
attempt that passes it meanwhile is stopped when the hub is back.
"""

import asyncio
import contextlib
import hashlib
import json
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer

from hublet.core import clock
from hublet.core.config.kinds import ImageSource
from hublet.core.logs import get_logger
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime import attempt_processes
from hublet.runtime.attempt_folder import note_log_start
from hublet.runtime.docker import containers, log_follower
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.records import (
    AttachPoint,
    LaunchOrder,
    RunnerCapabilities,
)

NAME = "docker"
log = get_logger("jobs")

_HEADER = struct.Struct(">BxxxL")
_NOT_FOUND, _CONFLICT, _SERVER_ERROR = 404, 409, 500
_STOP_FILE, _TIMED_OUT_FILE = "stop", "timed-out"
# Errors of the connection to the engine.
_UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError)


def docker_runner(
    data_dir: Path, *, image_map: Sequence[ImageSource], network: bool
) -> "DockerRunner":
    """Return the runner of a hub; the engine is that of DOCKER_HOST, or the usual socket.

    Raises ValueError where neither exists.
    """
    digest = hashlib.sha256(str(data_dir.absolute()).encode()).hexdigest()
    return DockerRunner(
        engine=aiodocker.Docker(),
        hub=digest[:16],
        data_dir=data_dir.absolute(),
        image_map=image_map,
        network=network,
    )


@dataclass(slots=True, kw_only=True)
class DockerRunner:
    """The handle is the name of the container; its labels hold everything else."""

    engine: aiodocker.Docker
    # Label of this hub's containers in the engine.
    hub: str
    # The labels of containers name paths in it; those of older versions are absolute.
    data_dir: Path
    image_map: Sequence[ImageSource] = ()
    network: bool = False
    name: str = NAME
    _followers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _drained: set[str] = field(default_factory=set)
    _stops: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _changed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _network_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_local(self) -> bool:
        """Tell whether the engine is one of this machine, behind a socket in the file system."""
        return str(self.engine.docker_host).startswith("unix:")

    async def probe(self) -> RunnerCapabilities:
        try:
            version = await self.engine.version()
        except (aiodocker.DockerError, *_UNREACHABLE) as error:
            sentence = f"The Docker engine does not answer: {error}. Start it, or set DOCKER_HOST."
            return RunnerCapabilities(usable=False, sentence=sentence)
        return containers.capabilities_of(version, network=self.network)

    async def launch(self, order: LaunchOrder) -> str:
        await asyncio.to_thread(note_log_start, order.folder, order.log)
        order = await asyncio.to_thread(containers.with_variable_files, order)
        try:
            await self._begin(order)
        except aiodocker.DockerError as error:
            await self.remove(containers.name_of(order))
            if order.group:
                await self._remove_networks()
            kind = CannotRunYet if error.status >= _SERVER_ERROR else CannotRun
            raise kind(f"the engine says: {error.message}") from error
        except _UNREACHABLE as error:
            raise CannotRunYet(f"the engine does not answer: {error}") from error
        await self.inspect(containers.name_of(order))
        return containers.name_of(order)

    async def _begin(self, order: LaunchOrder) -> None:
        try:
            await self._start(order)
        except _ImageMissing:
            # Outside of the lock, so that no other group waits for a pull.
            login = order.image_login
            auth = {"username": login.username, "password": login.password} if login else None
            await self.engine.images.pull(self._image(order.image), auth=auth)
            await self._start(order)

    async def _start(self, order: LaunchOrder) -> None:
        # Locked, because a network without containers would be removed in between.
        async with self._network_lock if order.group else contextlib.nullcontext():
            await self._connect(order)
            container = await self._create(order)
            if (await container.show())["State"]["Status"] in {"created", "configured"}:
                await container.start()

    async def _connect(self, order: LaunchOrder) -> None:
        """Create the network of an attempt's group, unless it exists."""
        if (name := containers.group_of(order, hub=self.hub)) is None:
            return
        config = containers.network_config_of(name, hub=self.hub, network=self.network)
        try:
            await self.engine.networks.create(config)
        except aiodocker.DockerError as error:
            if error.status != _CONFLICT:
                raise

    async def _create(self, order: LaunchOrder) -> DockerContainer:
        image = self._image(order.image)
        config = containers.config_of(
            order, image=image, hub=self.hub, network=self.network, data_dir=self.data_dir
        )
        name = containers.name_of(order)
        try:
            return await self.engine.containers.create(config, name=name)
        except aiodocker.DockerError as error:
            if error.status == _CONFLICT:
                return self.engine.containers.container(name)
            if error.status == _NOT_FOUND:
                raise _ImageMissing(error.status, error.message) from error
            raise

    def _image(self, name: str) -> str:
        """Return the image of the engine for a name; an unmapped name is used as it is."""
        targets = (i.target for i in self.image_map if fnmatchcase(name, i.pattern))
        return next(targets, name)

    async def inspect(self, handle: str) -> Observation:
        try:
            details = await self.engine.containers.container(handle).show()
        except aiodocker.DockerError as error:
            gone = error.status == _NOT_FOUND
            phase = Phase.gone if gone else Phase.unknown
            return Observation(phase=phase, reason=None if gone else error.message)
        except _UNREACHABLE as error:
            return Observation(phase=Phase.unknown, reason=str(error))
        folder = self.data_dir / details["Config"]["Labels"][containers.FOLDER]
        observation = containers.observation_of(
            details["State"],
            is_drained=handle in self._drained,
            timed_out=(folder / _TIMED_OUT_FILE).exists(),
            stopped=(folder / _STOP_FILE).exists(),
        )
        if observation.phase is Phase.running and handle not in self._followers:
            self._followers[handle] = asyncio.create_task(self._follow_attempt(handle, details))
        return observation

    async def watch(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        await self._mark(handle, _STOP_FILE)
        # A second SIGTERM would make some programs quit at once.
        if handle not in self._stops or not grace_seconds:
            task = self._stops[handle] = asyncio.create_task(self._stop(handle, grace_seconds))
            task.add_done_callback(lambda _: self._stops.pop(handle, None))

    async def remove(self, handle: str) -> None:
        if (follower := self._followers.pop(handle, None)) is not None:
            follower.cancel()
        self._drained.discard(handle)
        with _ignore_missing():
            container = self.engine.containers.container(handle)
            labels = (await container.show())["Config"]["Labels"]
            await container.delete(force=True, v=True)
            folder = self.data_dir / labels[containers.FOLDER]
            await asyncio.to_thread(attempt_processes.remove_folder, folder)
            if containers.GROUP in labels:
                await self._remove_networks()

    async def _remove_networks(self) -> None:
        """Remove the networks of groups without containers, started or not."""
        filters = {"label": [f"{containers.HUB}={self.hub}"]}
        async with self._network_lock:
            for network in await self.engine.networks.list(filters=filters):
                members = {"label": [f"{containers.GROUP}={network['Name']}"]}
                if not await self.engine.containers.list(all=True, filters=json.dumps(members)):
                    with _ignore_missing():
                        await (await self.engine.networks.get(network["Id"])).delete()

    async def handles(self) -> list[str]:
        filters = json.dumps({"label": [f"{containers.HUB}={self.hub}"]})
        found = await self.engine.containers.list(all=True, filters=filters)
        await self._remove_networks()
        return sorted(container["Names"][0].lstrip("/") for container in found)

    async def tidy_up(self) -> None:
        """Do nothing: images are the engine's, which prunes them itself."""

    async def usage(self, handle: str) -> Usage | None:
        with _ignore_missing():
            stats = await self.engine.containers.container(handle).stats(stream=False)
            return containers.usage_of(stats[0]) if stats and stats[0].get("read") else None
        return None

    async def attach_point(self, handle: str) -> AttachPoint | None:
        with _ignore_missing():
            details = await self.engine.containers.container(handle).show()
            return await asyncio.to_thread(
                attempt_processes.attach_point_of_container, details["State"]["Pid"], details["Id"]
            )
        return None

    async def close(self) -> None:
        """Disconnect from the engine; containers go on."""
        tasks = [*self._followers.values(), *self._stops.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.engine.close()

    async def _follow_attempt(self, handle: str, details: dict[str, Any]) -> None:
        """Copy the output of an attempt into its log until it ends; stop it at its deadline."""
        deadline = asyncio.create_task(self._keep_deadline(handle, details))
        # An earlier follower may have failed, and this one starts over.
        self._drained.discard(handle)
        try:
            await self._follow(handle, details)
            self._drained.add(handle)
        except (aiodocker.DockerError, *_UNREACHABLE) as error:
            # The next inspection starts another follower.
            log.warning("the output of a container broke off", container=handle, error=str(error))
        finally:
            deadline.cancel()
            self._followers.pop(handle, None)
            self._changed.put_nowait(handle)

    async def _follow(self, handle: str, details: dict[str, Any]) -> None:
        labels = details["Config"]["Labels"]
        started = containers.parse_time(details["State"]["StartedAt"]) or clock.now()
        await log_follower.follow(
            self._output(handle),
            folder=self.data_dir / labels[containers.FOLDER],
            log=self.data_dir / labels[containers.LOG],
            limit=int(labels[containers.LOG_BYTES]),
            started=clock.wire(started),
        )

    async def _output(self, handle: str) -> AsyncIterator[bytes]:
        """Yield the output of a container, from its first byte to its last."""
        params = {"stdout": "1", "stderr": "1", "follow": "1"}
        # The public method decodes each piece by itself, and fails at bytes that are no UTF-8.
        query = self.engine._query(  # noqa: SLF001 - as said.
            f"containers/{handle}/logs", params=params, timeout=aiohttp.ClientTimeout(total=None)
        )
        async with query as response, response:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    _, length = _HEADER.unpack(await response.content.readexactly(_HEADER.size))
                    yield await response.content.readexactly(length)

    async def _keep_deadline(self, handle: str, details: dict[str, Any]) -> None:
        labels = details["Config"]["Labels"]
        started = containers.parse_time(details["State"]["StartedAt"]) or clock.now()
        passed = (clock.now() - started).total_seconds()
        await asyncio.sleep(max(float(labels[containers.TIMEOUT]) - passed, 0))
        await self._mark(handle, _TIMED_OUT_FILE)
        await self._stop(handle, float(labels[containers.GRACE]))

    async def _mark(self, handle: str, mark: str) -> None:
        with _ignore_missing():
            details = await self.engine.containers.container(handle).show()
            folder = self.data_dir / details["Config"]["Labels"][containers.FOLDER]
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
            await asyncio.to_thread((folder / mark).touch)

    async def _stop(self, handle: str, grace_seconds: float) -> None:
        with _ignore_missing():
            await self.engine.containers.container(handle).stop(t=round(grace_seconds))


class _ImageMissing(aiodocker.DockerError):
    """The engine does not have the image of a container."""


@contextlib.contextmanager
def _ignore_missing() -> Iterator[None]:
    """Ignore that a container does not exist any more."""
    try:
        yield
    except aiodocker.DockerError as error:
        if error.status != _NOT_FOUND:
            raise
