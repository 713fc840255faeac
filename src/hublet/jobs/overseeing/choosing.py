"""Which runner this hub uses: the one that the settings name, or the best that works here."""

from hublet.core.config import Settings
from hublet.core.config.kinds import ImageSource
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.networks.joining import Networks
from hublet.jobs.networks.records import Policy
from hublet.jobs.runners import process, sandbox
from hublet.jobs.runners.records import Ability, Runner

_NO_DOCKER = "The Docker runner needs the package aiodocker: pip install 'hublet[docker]'."
_HOST = (ImageSource(pattern="*", target="host"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A runner with what it can do here; None: there is none that could be asked."""

    runner: Runner | None
    ability: Ability


async def choose(settings: Settings) -> Choice:
    """Return the runner of this hub; the ability tells in words why it may be of no use."""
    asked = settings.jobs.runner
    if asked == "docker":
        return await _docker(settings)
    if asked == process.NAME:
        return await _probed(process.process_runner(settings.database.data_dir.absolute()))
    choice = await _probed(_sandbox(settings))
    if asked == "auto" and not choice.ability.usable and settings.server.test_mode:
        # Never elsewhere: a plain process may do whatever the hub may.
        return await _probed(process.process_runner(settings.database.data_dir.absolute()))
    return choice


async def _docker(settings: Settings) -> Choice:
    try:
        # Its library is an extra, and costs a while to load.
        from hublet.jobs.runners.docker import docker_runner  # noqa: PLC0415 - as above

        runner = docker_runner(
            settings.database.data_dir.absolute(),
            image_map=settings.jobs.images,
            network=settings.jobs.network != "none",
        )
    except ImportError:
        return Choice(runner=None, ability=Ability(usable=False, sentence=_NO_DOCKER))
    except ValueError as error:
        # Where the engine is to be found is told by variables that anybody may set wrongly.
        sentence = f"The Docker engine cannot be reached: {error}"
        return Choice(runner=None, ability=Ability(usable=False, sentence=sentence))
    return await _probed(runner)


def _sandbox(settings: Settings) -> Runner:
    data_dir = settings.database.data_dir.absolute()
    is_shared = settings.jobs.network == "shared"
    return sandbox.sandbox_runner(
        data_dir,
        image_map=image_map(settings),
        network=is_shared,
        networks=None if is_shared else Networks(data_dir=data_dir, policy=Policy.of(settings)),
        settings_file=settings.file,
    )


def image_map(settings: Settings) -> tuple[ImageSource, ...]:
    """Return what images are on this machine; test mode knows one that stands for all."""
    images = settings.jobs.images
    return _HOST if settings.server.test_mode and not images else images


async def _probed(runner: Runner) -> Choice:
    return Choice(runner=runner, ability=await runner.probe())
