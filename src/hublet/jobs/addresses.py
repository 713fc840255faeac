"""Where a job is reached from outside: its exposed ports, and its shell."""

from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.jobs.records import Job


def of_ports(job: Job, settings: Settings) -> list[str]:
    """Return one address for each exposed port; they answer once something listens there."""
    if job.expose is None:
        return []
    base = urlsplit(settings.base_url)
    place = settings.jobs_domain if base.port is None else f"{settings.jobs_domain}:{base.port}"
    return [f"{base.scheme}://{job.id}--{port}.{place}" for port in job.expose.ports]


def of_ssh(job: Job, settings: Settings) -> str | None:
    """Return the address of the shell of a job that asked for one."""
    return f"ssh://{job.id}@ssh.{settings.jobs_domain}" if job.spec.ssh else None
