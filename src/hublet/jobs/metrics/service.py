"""What a job uses of the machine, as the runner of its attempt tells it."""

from collections.abc import Awaitable, Callable

from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.jobs import hardware
from hublet.jobs.metrics.records import Measured
from hublet.jobs.metrics.schemas import JobMetric
from hublet.jobs.runners.records import Usage

# Takes the name of a runner and what that calls the attempt. None: nobody can tell right now.
Meter = Callable[[str, str], Awaitable[Usage | None]]

_NOTHING = Usage(cpu_millicores=0, memory_bytes=0)
_UNKNOWN_SIZE = FlavorSize(name="", cores=1, memory_bytes=2**30)


async def measure(job: Measured, settings: Settings, meter: Meter) -> JobMetric:
    """Return what a job uses; nothing, when nobody can tell: the client waits for each one."""
    usage: Usage | None = None
    if job.runner is not None and job.handle is not None:
        usage = await meter(job.runner, job.handle)
    usage = usage or _NOTHING
    size = _size(job, settings)
    millicores = max(1, round(size.cores * 1000))
    return JobMetric(
        cpu_usage_pct=round(100 * usage.cpu_millicores / millicores, 1),
        cpu_millicores=millicores,
        memory_used_bytes=usage.memory_bytes,
        memory_total_bytes=max(1, size.memory_bytes),
        rx_bps=usage.received_per_second * 8,
        tx_bps=usage.sent_per_second * 8,
        gpus={},
        replica=f"{job.job_id[-5:]}-{job.attempt}",
    )


def _size(job: Measured, settings: Settings) -> FlavorSize:
    # A flavor that is not offered any more may still have jobs that run.
    return hardware.offered(settings).get(job.flavor, _UNKNOWN_SIZE)
