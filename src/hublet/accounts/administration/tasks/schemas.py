"""Tasks that failed too often, on the wire."""

from typing import Annotated, Self

from pydantic import MISSING, Field

from hublet.core.clock import from_micros
from hublet.core.queue import ParkedTask
from hublet.core.schema import Schema, Timestamp


class ParkedTaskCard(Schema):
    id: str
    kind: str
    attempts: int
    error: str
    parkedAt: Timestamp

    @classmethod
    def of(cls, task: ParkedTask) -> Self:
        return cls(
            id=task.id,
            kind=task.kind,
            attempts=task.attempts,
            error=task.error,
            parkedAt=from_micros(task.parked_at),
        )


class RetryTasks(Schema):
    # Without one, all of them.
    id: Annotated[str, Field(min_length=1)] | MISSING = MISSING


class RetriedTasks(Schema):
    count: int
