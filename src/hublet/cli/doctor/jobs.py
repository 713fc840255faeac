"""Checks of what runs jobs."""

from hublet.cli.doctor.findings import Finding, ok, warning
from hublet.core.config import Settings
from hublet.jobs import hardware
from hublet.jobs.overseeing.choosing import choose
from hublet.jobs.runners import sandbox
from hublet.jobs.runners.records import Ability

_CHECK = "jobs"
_ADVICE = "Until then jobs are refused, or wait."
_SHARED = "They reach everything that this machine does, its loopback included."
_SHARED_ADVICE = "Set jobs.network to outbound, or to none."


async def check(settings: Settings) -> Finding:
    """Say which runner there is and whether it works; nothing is run with it."""
    unknown = hardware.unknown_names(settings)
    if unknown:
        found = f"jobs.flavors has names that are no flavors: {', '.join(unknown)}."
        return warning(_CHECK, found, "Correct them; GET /api/jobs/hardware shows what is offered.")
    choice = await choose(settings)
    if choice.runner is None or not choice.ability.usable:
        return warning(_CHECK, f"No job can be run. {choice.ability.sentence}", _ADVICE)
    said = f"The runner is {choice.runner.name}. {choice.ability.sentence}"
    if settings.jobs.network == "shared" and choice.runner.name == sandbox.NAME:
        return warning(_CHECK, f"{said} {_SHARED}", _SHARED_ADVICE)
    groups = "" if choice.ability.network_groups else f" {_groups(choice.ability)}"
    return ok(_CHECK, f"{said}{groups}")


def _groups(ability: Ability) -> str:
    return f"There are no network groups. {ability.without_groups}"
