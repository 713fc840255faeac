"""Calls to a runner, each with a timeout; failures are logged, never raised."""

import asyncio

from hublet.core.logs import get_logger
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime.records import Runner

log = get_logger("jobs")

TIMEOUT_SECONDS = 5.0
# A cluster may have very many, and only the sweep waits for it.
LIST_TIMEOUT_SECONDS = 60.0


async def inspect(runner: Runner, handle: str, *, seconds: float = TIMEOUT_SECONDS) -> Observation:
    """Return what the runner observes; the phase is unknown when it fails or does not respond."""
    try:
        async with asyncio.timeout(seconds):
            return await runner.inspect(handle)
    except TimeoutError:
        return Observation(phase=Phase.unknown)
    except Exception as error:  # noqa: BLE001 - whatever a runner raises, the job may well run on
        log_runner_failure("a runner could not inspect an attempt", handle, error)
        return Observation(phase=Phase.unknown, reason=type(error).__name__)


async def list_handles(runner: Runner) -> list[str] | None:
    """Return the handles of the attempts that the runner has; None when it cannot tell."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            return await runner.handles()
    except Exception as error:  # noqa: BLE001 - a cluster may be away, and is asked again
        log.warning("a runner could not list its attempts", error=_describe(error))
        return None


async def usage(runner: Runner, handle: str) -> Usage | None:
    """Return what an attempt uses now; None when it does not run or the runner cannot tell."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await runner.usage(handle)
    except Exception as error:  # noqa: BLE001 - the job runs on, and the next sample may succeed
        log_runner_failure("a runner could not measure an attempt", handle, error)
        return None


async def stop(
    runner: Runner, handle: str, *, grace_seconds: float, seconds: float = TIMEOUT_SECONDS
) -> None:
    """Ask the runner to stop an attempt; only `inspect` tells whether it did."""
    try:
        async with asyncio.timeout(seconds):
            await runner.stop(handle, grace_seconds=grace_seconds)
    except Exception as error:  # noqa: BLE001 - it is asked again until it has ended
        log_runner_failure("a runner could not stop an attempt", handle, error)


async def remove(runner: Runner, handle: str) -> bool:
    """Clear away what is left of an attempt; False when that has to be retried."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            await runner.remove(handle)
    except Exception as error:  # noqa: BLE001 - it is asked again until it succeeds
        log_runner_failure("a runner could not clear an attempt away", handle, error)
        return False
    return True


def log_runner_failure(what: str, handle: str, error: BaseException) -> None:
    log.warning(what, handle=handle, error=_describe(error))


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
