"""Selection of the hub's runner, the null runner, and the check whether a job can run here."""

import asyncio
from collections.abc import AsyncIterator

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.jobs.errors import ImageNotFound, ImageRefused, NoNetworkGroups, NoRunner
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.images.sources import find_source, image_map
from hublet.runtime.networks.membership import Networks
from hublet.runtime.networks.records import NetworkPolicy
from hublet.runtime.records import (
    AnyAttachPoint,
    LaunchOrder,
    Runner,
    RunnerCapabilities,
)
from hublet.runtime.sandbox import runner as sandbox_runner
from hublet.runtime.sandbox import shim_runner

NO_RUNNER = "none"
_NO_KUBERNETES = "The Kubernetes runner needs lightkube: pip install 'hublet[kubernetes]'."
_NO_DOCKER = "The Docker runner needs the package aiodocker: pip install 'hublet[docker]'."
# How often a runner that cannot be used is probed again.
_PROBE_AGAIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerChoice:
    """A runner with its capabilities here; None: there is none to ask."""

    runner: Runner | None
    capabilities: RunnerCapabilities


async def choose_runner(settings: Settings) -> RunnerChoice:
    """Return the runner of this hub; its capabilities say in words why it cannot be used."""
    name = settings.jobs.runner
    if name == "docker":
        return await _choose_docker(settings)
    if name == "kubernetes":
        return await _choose_kubernetes(settings)
    if name == shim_runner.NAME:
        return await _probe(shim_runner.process_runner(settings.database.data_dir.absolute()))
    choice = await _probe(_sandbox_runner(settings))
    if name == "auto" and not choice.capabilities.usable and settings.server.test_mode:
        # Never elsewhere: a plain process may do whatever the hub may.
        return await _probe(shim_runner.process_runner(settings.database.data_dir.absolute()))
    return choice


async def _choose_docker(settings: Settings) -> RunnerChoice:
    try:
        # Its library is an extra, and costs a while to load.
        from hublet.runtime.docker.runner import docker_runner  # noqa: PLC0415 - as above

        runner = docker_runner(
            settings.database.data_dir.absolute(),
            image_map=settings.jobs.images,
            network=settings.jobs.network != "none",
        )
    except ImportError:
        return _unusable(_NO_DOCKER)
    except ValueError as error:
        # The address of the engine comes from environment variables, which may be wrong.
        return _unusable(f"The Docker engine cannot be reached: {error}")
    return await _probe(runner)


async def _choose_kubernetes(settings: Settings) -> RunnerChoice:
    try:
        # Its library is an extra, and costs a while to load.
        from hublet.runtime.kubernetes.runner import (  # noqa: PLC0415 - as above
            NoCluster,
            kubernetes_runner,
        )
    except ImportError:
        return _unusable(_NO_KUBERNETES)
    try:
        runner = await asyncio.to_thread(kubernetes_runner, settings)
    except NoCluster as error:
        return _unusable(str(error))
    return await _probe(runner)


def _unusable(sentence: str) -> RunnerChoice:
    capabilities = RunnerCapabilities(usable=False, sentence=sentence)
    return RunnerChoice(runner=None, capabilities=capabilities)


def _sandbox_runner(settings: Settings) -> Runner:
    data_dir = settings.database.data_dir.absolute()
    is_shared = settings.jobs.network == "shared"
    return sandbox_runner.sandbox_runner(
        data_dir,
        image_map=image_map(settings),
        network=is_shared,
        networks=None
        if is_shared
        else Networks(data_dir=data_dir, policy=NetworkPolicy.of(settings)),
        settings_file=settings.file,
        announces_host=uses_host_programs(settings),
        image_cache_bytes=settings.jobs.image_cache_bytes,
    )


def uses_host_programs(settings: Settings) -> bool:
    """Tell whether the host stands for images that nobody asked it to stand for."""
    is_mapped = bool(settings.jobs.images) or settings.server.test_mode
    return settings.jobs.host_programs and not is_mapped


async def _probe(runner: Runner) -> RunnerChoice:
    return RunnerChoice(runner=runner, capabilities=await runner.probe())


class NullRunner:
    """Null runner: launches nothing, and cannot tell how an attempt of another runner fares."""

    name = NO_RUNNER
    is_local = True

    def __init__(self, capabilities: RunnerCapabilities) -> None:
        self._capabilities = capabilities

    async def probe(self) -> RunnerCapabilities:
        return self._capabilities

    async def launch(self, order: LaunchOrder) -> str:  # noqa: ARG002 - part of the protocol
        raise CannotRunYet(self._capabilities.sentence)

    async def inspect(self, handle: str) -> Observation:  # noqa: ARG002 - as above
        # An attempt of another runner may well go on.
        return Observation(phase=Phase.unknown, reason=self._capabilities.sentence)

    async def watch(self) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        """Do nothing."""

    async def remove(self, handle: str) -> None:
        """Do nothing."""

    async def handles(self) -> list[str]:
        return []

    async def tidy_up(self) -> None:
        """Do nothing."""

    async def usage(self, handle: str) -> Usage | None:  # noqa: ARG002 - as above
        return None

    async def attach_point(self, handle: str) -> AnyAttachPoint | None:  # noqa: ARG002 - as above
        return None


class RunnerAvailability:
    """The selected runner, remembered; one that cannot be used is probed again now and then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._choice: RunnerChoice | None = None
        self._probed_at = 0.0
        self._probing = asyncio.Lock()

    async def check(self, image: str | None, *, is_in_group: bool) -> None:
        """Refuse a job that nothing here would run; without an image it runs a space.

        No transaction may be open: the runner is probed. One that the settings name may work
        on another machine, where the workers are, so only its absence counts. A process that
        only serves the API has its workers elsewhere in any case.
        """
        choice = await self._chosen()
        runner, is_api = choice.runner, self._settings.server.role == "api"
        is_auto = self._settings.jobs.runner == "auto" and not is_api
        if runner is None or (is_auto and not choice.capabilities.usable):
            raise NoRunner(choice.capabilities.sentence)
        if is_in_group and choice.capabilities.usable and not choice.capabilities.network_groups:
            raise NoNetworkGroups(choice.capabilities.without_groups)
        if image and runner.name == sandbox_runner.NAME:
            self._check_image(image)

    def _check_image(self, image: str) -> None:
        try:
            find_source(self._settings, image)
        except CannotRun as error:
            if self._settings.jobs.registries:
                raise ImageRefused(str(error)) from None
            raise ImageNotFound(image) from None

    async def usage(self, runner: str, handle: str) -> Usage | None:
        """Return what an attempt uses now; None when another runner has it."""
        chosen = (await self._chosen()).runner
        return await chosen.usage(handle) if chosen is not None and chosen.name == runner else None

    async def attach_point(self, runner: str, handle: str) -> AnyAttachPoint | None:
        """Return where to attach to an attempt; None: it does not run, or out of reach."""
        chosen = (await self._chosen()).runner
        is_chosen = chosen is not None and chosen.name == runner
        return await chosen.attach_point(handle) if chosen and is_chosen else None

    async def _chosen(self) -> RunnerChoice:
        async with self._probing:
            is_old = monotonic() >= self._probed_at + _PROBE_AGAIN_SECONDS
            if self._choice is None or (is_old and not self._choice.capabilities.usable):
                self._choice = await choose_runner(self._settings)
                self._probed_at = monotonic()
            return self._choice
