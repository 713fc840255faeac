"""Whether this hub offers SSH at all; known without loading the library for it."""

from importlib.util import find_spec

from hublet.core.config import Settings
from hublet.jobs.records import Job

# The port that clients take when none is said.
_USUAL = 22
NOT_INSTALLED = "its operator has not installed it: pip install 'hublet[ssh]'"
SWITCHED_OFF = "its operator has switched it off with the setting jobs.ssh_port"


def why_not(settings: Settings) -> str | None:
    """Return why there is no SSH here; None: there is."""
    if find_spec("asyncssh") is None:
        return NOT_INSTALLED
    # In test mode any free port is taken.
    return None if settings.jobs.ssh_port or settings.server.test_mode else SWITCHED_OFF


def address_of(job: Job, settings: Settings) -> str | None:
    """Return the address of the shell of a job that asked for one, where there is a gateway."""
    port = settings.jobs.ssh_port
    if not job.spec.ssh or not port or why_not(settings) is not None:
        return None
    place = f"ssh.{settings.jobs_domain}"
    return f"ssh://{job.id}@{place if port == _USUAL else f'{place}:{port}'}"
