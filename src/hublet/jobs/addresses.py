"""Addresses of a job: of its exposed ports, and of its SSH shell where the hub offers one."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.jobs.records import JobRecord

# The port that SSH clients use by default.
_DEFAULT_SSH_PORT = 22
SSH_NOT_INSTALLED = "its operator has not installed it: pip install 'hublet[ssh]'"
SSH_SWITCHED_OFF = "its operator has switched it off with the setting jobs.ssh_port"


def port_addresses(job: JobRecord, settings: Settings) -> list[str]:
    """Return one address for each exposed port; it responds once something listens there."""
    return [port_address(job.id, port, settings) for port in job.expose.ports] if job.expose else []


def port_address(job_id: str, port: int, settings: Settings) -> str:
    """Return the address of a port: its scheme and network port are those of the hub itself."""
    base = urlsplit(settings.base_url)
    domain = settings.jobs_domain if base.port is None else f"{settings.jobs_domain}:{base.port}"
    return f"{base.scheme}://{job_id}--{port}.{domain}"


def why_no_ssh(settings: Settings) -> str | None:
    """Return the reason why this hub offers no SSH; None: it does."""
    if find_spec("asyncssh") is None:
        return SSH_NOT_INSTALLED
    # In test mode any free port is taken.
    return None if settings.jobs.ssh_port or settings.server.test_mode else SSH_SWITCHED_OFF


def ssh_address(job: JobRecord, settings: Settings) -> str | None:
    """Return the address of the shell of a job that asked for one, where there is a gateway."""
    port = settings.jobs.ssh_port
    if not job.spec.ssh or not port or why_no_ssh(settings) is not None:
        return None
    host = f"ssh.{settings.jobs_domain}"
    return f"ssh://{job.id}@{host if port == _DEFAULT_SSH_PORT else f'{host}:{port}'}"
