"""Which jobs are asked for, and what is known of one beside its record."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Jobs of an owner in any of these stages, with all of these labels."""

    owner_id: str
    user_id: str
    # Whoever does not sees those without a resource group, and those of their own groups.
    sees_every_group: bool
    stages: tuple[Stage, ...]
    # Each as in `name=value`.
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    creator_name: str
    # Of the attempt that runs or ran last.
    attempt_started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """How far a job was at a moment."""

    id: str
    stage: Stage
    message: str | None
    attempt: int
    at: datetime
