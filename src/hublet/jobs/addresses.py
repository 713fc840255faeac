"""Where a job is reached from outside: its exposed ports."""

from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.jobs.records import Job


def of_ports(job: Job, settings: Settings) -> list[str]:
    """Return one address for each exposed port; they answer once something listens there."""
    return [of_port(job.id, port, settings) for port in job.expose.ports] if job.expose else []


def of_port(job_id: str, port: int, settings: Settings) -> str:
    """Return the address of a port: with the scheme, and behind the port, of the hub itself."""
    base = urlsplit(settings.base_url)
    place = settings.jobs_domain if base.port is None else f"{settings.jobs_domain}:{base.port}"
    return f"{base.scheme}://{job_id}--{port}.{place}"
