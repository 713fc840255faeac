"""What is to be measured."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Flavor, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How far a job is, and the attempt that runs now."""

    job_id: str
    stage: Stage
    flavor: Flavor
    attempt: int
    # None: nothing runs right now.
    runner: str | None = None
    handle: str | None = None
