"""Shim runner, the base of the process and the sandbox runner: a shim for each attempt; and the process
runner: an attempt is a plain process of the hub's own user, without isolation.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hublet.core import clock
from hublet.core.dataclasses import dataclass
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime import attempt_processes, cgroups
from hublet.runtime.attempt_folder import boot_id, identity_of, read_status, spill_long_variables
from hublet.runtime.attempt_processes import ATTEMPT_VARIABLE
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.rootfs import Image, argv_of
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.networks.membership import NetworkAttachment, Networks, allocated_network
from hublet.runtime.records import AttachPoint, LaunchOrder, RunnerCapabilities
from hublet.runtime.sandbox.shim_starter import ShimStarterPool
from hublet.runtime.shim.attempt import STOP_FILE
from hublet.runtime.shim.program import is_locked

# Reasons why the end of an attempt is not known.
_KILLED = "what looked after it was killed"
_RESTARTED = "the machine was started anew"
_ELSEWHERE = "it runs on another machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """How a shim starts an attempt; without bubblewrap it is a plain process."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    cwd: Path
    bubblewrap: str | None = None
    options: list[str] = field(default_factory=list)
    filter: bytes | None = None
    # Of the machine; 0: the user that the hub is.
    user: int = 0
    stage: list[str] = field(default_factory=list)
    # Layers of the image that the shim mounts; see `shim.child.mount_layers`.
    layers: list[str] = field(default_factory=list)
    rlimits: tuple[tuple[str, int], ...] = ()
    # A line at the start of the log.
    notice: str = ""


@dataclass(slots=True, kw_only=True)
class ShimRunner:
    """A runner of this machine. The handle is the folder of the attempt."""

    name: str
    data_dir: Path
    build_spec: Callable[[LaunchOrder, NetworkAttachment | None], ProcessSpec]
    probe_machine: Callable[[], RunnerCapabilities]
    # None: jobs share the network of the machine, or have none at all.
    networks: Networks | None = None
    # Removes what no attempt in these folders uses.
    prune: Callable[[list[Path]], None] = lambda _attempts: None
    # Whether the shim's child is the job itself, and not bubblewrap.
    is_plain: bool = False
    is_local: bool = True
    _starters: ShimStarterPool = field(default_factory=ShimStarterPool)
    _watched: dict[str, int] = field(default_factory=dict)
    _changed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _samples: dict[str, attempt_processes.UsageSample] = field(default_factory=dict)

    async def probe(self) -> RunnerCapabilities:
        capabilities = await asyncio.to_thread(self.probe_machine)
        if capabilities.usable:
            await asyncio.to_thread(self._starters.warm_up)
        return capabilities

    async def launch(self, order: LaunchOrder) -> str:
        handle = await run_in_launch_thread(self._launch, order)
        self._watch(handle)
        return handle

    async def inspect(self, handle: str) -> Observation:
        # A small file, which is read in less time than a thread would take to begin.
        status = read_status(Path(handle))
        if status is None or not _is_attended(status):
            observation = await asyncio.to_thread(observe, Path(handle))
        else:
            observation = _observation_of(status)
        if observation.phase in {Phase.pending, Phase.running}:
            self._watch(handle)
        return observation

    async def watch(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        await asyncio.to_thread(_stop, Path(handle), grace_seconds)

    async def remove(self, handle: str) -> None:
        await asyncio.to_thread(self._remove, Path(handle))

    async def handles(self) -> list[str]:
        return await asyncio.to_thread(self._handles)

    async def tidy_up(self) -> None:
        await asyncio.to_thread(lambda: self.prune([Path(handle) for handle in self._handles()]))

    async def usage(self, handle: str) -> Usage | None:
        sample = await asyncio.to_thread(
            lambda: attempt_processes.sample_usage(read_status(Path(handle)))
        )
        if sample is None:
            self._samples.pop(handle, None)
            return None
        before, self._samples[handle] = self._samples.get(handle), sample
        return attempt_processes.usage_between(before, sample)

    async def attach_point(self, handle: str) -> AttachPoint | None:
        status = await asyncio.to_thread(read_status, Path(handle))
        return await asyncio.to_thread(
            attempt_processes.attach_point_of, status, is_plain=self.is_plain
        )

    @property
    def _index(self) -> Path:
        return self.data_dir.absolute() / "jobs" / "runners" / self.name

    def _launch(self, order: LaunchOrder) -> str:
        # Absolute, because the shim changes its working directory.
        order = replace(order, folder=order.folder.absolute(), log=order.log.absolute())
        order.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        order.log.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(order.folder / "launch", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Another hub may have started the attempt in the meantime.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if read_status(order.folder) is None:
                self._begin(order)
        finally:
            os.close(lock)
        return str(order.folder)

    def _begin(self, order: LaunchOrder) -> None:
        with allocated_network(self.networks, order) as network:
            spec = _shim_spec(order, self.build_spec(order, network), network)
            # The index comes first, so that no attempt runs which could not be found again.
            self._index.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self._link_to(order.folder).symlink_to(order.folder)
            self._starters.start(spec)

    def _link_to(self, folder: Path) -> Path:
        return self._index / f"{folder.parent.name}-{folder.name.removeprefix('attempt-')}"

    def _remove(self, folder: Path) -> None:
        if status := read_status(folder):
            identity_of(status).send(signal.SIGKILL)
            attempt_processes.kill_leftovers(folder, status)
        if self.networks is not None:
            self.networks.leave(folder.absolute())
        self._link_to(folder.absolute()).unlink(missing_ok=True)
        attempt_processes.remove_folder(folder)

    def _handles(self) -> list[str]:
        if self.networks is not None:
            self.networks.clean_up()
        if not self._index.exists():
            return []
        targets = [_read_link(link) for link in self._index.iterdir()]
        return sorted(str(target) for target in targets if target)

    def _watch(self, handle: str) -> None:
        """Watch the shim's pidfd, for a hint when it ends; the caller's polling does not need it."""
        if handle in self._watched or (status := read_status(Path(handle))) is None:
            return
        if (fd := identity_of(status).open()) is None:
            self._changed.put_nowait(handle)
            return
        self._watched[handle] = fd
        asyncio.get_running_loop().add_reader(fd, self._ended, handle)

    def _ended(self, handle: str) -> None:
        fd = self._watched.pop(handle)
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)
        if self.networks is None or not self.networks.has_networks():
            self._changed.put_nowait(handle)
            return
        loop = asyncio.get_running_loop()
        # Its names are removed before the hint, so that nobody finds an attempt known as ended.
        leaving = loop.run_in_executor(None, self.networks.leave, Path(handle))
        leaving.add_done_callback(lambda _: self._changed.put_nowait(handle))


def _shim_spec(
    order: LaunchOrder, launch: ProcessSpec, network: NetworkAttachment | None
) -> dict[str, Any]:
    rlimits = [("RLIMIT_CORE", 0), *launch.rlimits]
    if not cgroups.own_hierarchies():
        rlimits.append(("RLIMIT_DATA", order.memory_bytes))
    groups = cgroups.groups_for(
        cgroups.own_hierarchies(),
        name=f"hublet-{order.job_id}-{order.number}",
        cores=order.cores,
        memory_bytes=order.memory_bytes,
    )
    return {
        "folder": str(order.folder),
        "log": str(order.log),
        "log_bytes": order.log_bytes,
        "timeout": order.timeout_seconds,
        "grace": order.grace_seconds,
        "offset": clock.offset() // timedelta(microseconds=1),
        "groups": groups,
        "adopt": launch.bubblewrap is None,
        "sandboxed": launch.bubblewrap is not None,
        "argv": list(launch.argv),
        "environment": launch.environment,
        "cwd": str(launch.cwd),
        "bubblewrap": launch.bubblewrap,
        "options": launch.options,
        "filter": launch.filter,
        "user": launch.user,
        "stage": launch.stage,
        "layers": launch.layers,
        "rlimits": rlimits,
        "notice": launch.notice,
        "network": network.namespace_path if network else "",
        "switch": network.switch_path if network else "",
    }


def observe(folder: Path) -> Observation:
    status = read_status(folder)
    if status is None:
        return Observation(phase=Phase.gone)
    if not _is_attended(status):
        # The shim may have written the exit, and ended, since the status was read.
        status = read_status(folder) or status
        if status["phase"] != Phase.exited:
            return _observe_unattended(folder, status)
    return _observation_of(status)


def _is_attended(status: dict[str, Any]) -> bool:
    """Tell whether a status is as good as ever: its shim goes on, or has reported the exit."""
    return status["phase"] == Phase.exited or identity_of(status).lives()


def _observation_of(status: dict[str, Any]) -> Observation:
    return Observation(
        phase=Phase(status["phase"]),
        started_at=_optional_time(status.get("started_at")),
        ended_at=_optional_time(status.get("ended_at")),
        exit_code=status.get("exit_code"),
        signal=status.get("signal"),
        out_of_memory=status.get("out_of_memory", False),
        timed_out=status.get("timed_out", False),
        stopped=status.get("stopped", False),
        reason=status.get("reason"),
    )


def _observe_unattended(folder: Path, status: dict[str, Any]) -> Observation:
    """Observe an attempt whose shim does not run on this machine.

    Workers of several machines share the data folder, and with it the locks of their shims.
    """
    is_of_this_boot = status["boot"] == boot_id()
    if not is_of_this_boot and is_locked(str(folder)):
        return Observation(phase=Phase.unknown, reason=_ELSEWHERE)
    attempt_processes.kill_leftovers(folder, status)
    return Observation(
        phase=Phase.gone,
        started_at=_optional_time(status.get("started_at")),
        reason=_KILLED if is_of_this_boot else _RESTARTED,
    )


def _read_link(link: Path) -> Path | None:
    try:
        return link.readlink()
    except FileNotFoundError:
        return None  # Removed by another since it was listed.


def _optional_time(micros: int | None) -> datetime | None:
    return None if micros is None else clock.from_micros(micros)


def _stop(folder: Path, grace_seconds: float) -> None:
    # In the folder, so that an attempt which is only just starting sees it too.
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / f"{STOP_FILE}.new").write_text(str(grace_seconds))
    (folder / f"{STOP_FILE}.new").rename(folder / STOP_FILE)
    if status := read_status(folder):
        identity_of(status).send(signal.SIGTERM)


NAME = "process"
_WITHOUT_GROUPS = "Jobs are plain processes here, which share the network of the machine."


def process_runner(data_dir: Path) -> ShimRunner:
    return ShimRunner(
        name=NAME, data_dir=data_dir, build_spec=_process_spec, probe_machine=_probe, is_plain=True
    )


def _probe() -> RunnerCapabilities:
    limits = bool(cgroups.own_hierarchies())
    return RunnerCapabilities(
        usable=True,
        sentence="Jobs run as plain processes of the hub's own user: nothing keeps them from "
        "what that user may do." + ("" if limits else f" {cgroups.NO_LIMITS}"),
        limits=limits,
        without_groups=_WITHOUT_GROUPS,
    )


def _process_spec(order: LaunchOrder, _network: NetworkAttachment | None) -> ProcessSpec:
    if order.binds:
        raise CannotRun("The process runner cannot mount volumes; the sandbox runner can.")
    if order.group:
        raise CannotRun(f"The process runner has no network groups. {_WITHOUT_GROUPS}")
    home = order.folder / "home"
    home.mkdir(exist_ok=True)
    defaults = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    return ProcessSpec(
        argv=argv_of(order, Image(root=Path("/"))),
        environment=defaults
        | spill_long_variables(order.environment, home=home, seen_at=str(home))
        | {ATTEMPT_VARIABLE: str(order.folder)},
        cwd=order.content or home,
    )
