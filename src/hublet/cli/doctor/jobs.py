"""Checks of what runs jobs."""

from hublet.cli.doctor.findings import Finding, ok, warning
from hublet.core.config import Settings
from hublet.jobs import hardware
from hublet.jobs.overseeing.choosing import choose

_CHECK = "jobs"
_ADVICE = "Until then jobs are refused, or wait."


async def check(settings: Settings) -> Finding:
    """Say which runner there is and whether it works; nothing is run with it."""
    unknown = hardware.unknown_names(settings)
    if unknown:
        found = f"jobs.flavors has names that are no flavors: {', '.join(unknown)}."
        return warning(_CHECK, found, "Correct them; GET /api/jobs/hardware shows what is offered.")
    choice = await choose(settings)
    if choice.runner is None or not choice.ability.usable:
        return warning(_CHECK, f"No job can be run. {choice.ability.sentence}", _ADVICE)
    return ok(_CHECK, f"The runner is {choice.runner.name}. {choice.ability.sentence}")
