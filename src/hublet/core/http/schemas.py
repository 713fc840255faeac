"""What the hub says about itself, on the wire."""

from typing import Annotated, Literal

from pydantic import Field

from hublet.core.schema import Schema, Timestamp


class Health(Schema):
    status: Literal["ok"]


class AgentHarnesses(Schema):
    """Empty: a registry that names any would switch the public command line to another mode."""

    standardEnvVars: list[str]
    harnesses: dict[str, str]


class MoveClock(Schema):
    # A year each way reaches every schedule and every expiry there is.
    advanceSeconds: Annotated[float, Field(ge=-31_536_000, le=31_536_000)]


class Clock(Schema):
    now: Timestamp
    offsetSeconds: float
