"""Replays, recoveries and pings on the wire."""

from typing import Annotated, Any, Self

from pydantic import MISSING, AwareDatetime, BeforeValidator, Field, WithJsonSchema

from hublet.core.schema import ObjectId, Schema
from hublet.webhooks.activity.resending import records


def _text_only(value: Any) -> Any:
    # A number would be taken for seconds since 1970.
    if not isinstance(value, str):
        raise ValueError("must be a timestamp such as 2026-11-15T01:44:56Z")  # noqa: TRY004 - pydantic's rule
    return value


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_text_only),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Recover(Schema):
    since: Moment
    # The present moment unless given.
    until: Moment | MISSING = MISSING


class Recovered(Schema):
    """How many deliveries are sent again."""

    count: int


class Sent(Schema):
    """What came of the attempt."""

    deliveryId: ObjectId
    status: Annotated[int, Field(description="The status of the answer; 0 when none came.")]
    reason: Annotated[
        str | MISSING,
        Field(
            description="Why no answer came, or why it counts as a failure. `waiting`: the attempt "
            "was not made yet; the list of deliveries will tell what came of it."
        ),
    ] = MISSING
    jobId: Annotated[str | MISSING, Field(description="The job that was started.")] = MISSING

    @classmethod
    def of(cls, outcome: records.Outcome) -> Self:
        return cls.model_validate(
            {
                "deliveryId": outcome.delivery_id,
                "status": outcome.status or 0,
                "reason": outcome.reason or MISSING,
                "jobId": outcome.job_id or MISSING,
            }
        )
