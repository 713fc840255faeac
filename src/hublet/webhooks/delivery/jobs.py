"""The seam to jobs: a delivery whose target is a job starts one instead of calling a URL."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """What a webhook asks the jobs feature to start; one of `job` and `source_id` is set."""

    webhook_id: str
    # Whose job it is.
    owner_id: str
    creator_id: str
    # The id of the delivery: the same key never starts a second job.
    key: str
    # As the webhook's owner asked for it, in wire names; or the job to take all that from.
    job: dict[str, Any] | None = field(default=None, repr=False)
    source_id: str | None = None
    # What a webhook adds, over what the job itself says.
    environment: dict[str, str] = field(repr=False)
    secrets: dict[str, str] = field(repr=False)


# Starts the job, or finds the one that was started under the same key, and returns its id. It
# opens its own transactions. What the owner of the webhook may know of a refusal it raises as
# a HubError.
Starter = Callable[[Database, JobOrder], Awaitable[str]]

_starters: list[Starter] = []


class JobsUnavailable(Exception):
    """Nothing in this hub starts jobs."""


def set_starter(starter: Starter | None) -> None:
    """Name what starts jobs; None: nothing does."""
    _starters[:] = [] if starter is None else [starter]


async def start(database: Database, order: JobOrder) -> str:
    if not _starters:
        raise JobsUnavailable
    return await _starters[0](database, order)
