"""Wire schemas of the hub's own routes: health, clock and faults."""

from typing import Annotated, Literal, Self

from pydantic import Field

from hublet.core.http.faults import Fault
from hublet.core.schema import Schema, Timestamp


class Health(Schema):
    status: Literal["ok"]


class AgentHarnesses(Schema):
    """Empty: a registry that names any would switch the public command line to another mode."""

    standardEnvVars: list[str]
    harnesses: dict[str, str]


class ProvisionedServices(Schema):
    """Services that agents can buy; a self-hosted hub has none."""

    data: list[str]


class MoveClock(Schema):
    # A year each way reaches every schedule and every expiry there is.
    advanceSeconds: Annotated[float, Field(ge=-31_536_000, le=31_536_000)]


class Clock(Schema):
    now: Timestamp
    offsetSeconds: float


_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]
_HeaderValue = Annotated[str, Field(pattern=r"^[ -~]{0,1000}$")]


class PlanFault(Schema):
    """What shall become of the next requests that fit."""

    # Absent or null: the right answer comes after the delay.
    status: Annotated[int | None, Field(ge=400, le=599)] = None
    delaySeconds: Annotated[float, Field(ge=0, le=300)] = 0.0
    headers: dict[_HeaderName, _HeaderValue] = Field(default={})
    method: Annotated[str | None, Field(pattern=r"^[A-Z]{1,20}$")] = None
    # As in a shell: * stands for anything.
    path: Annotated[str | None, Field(pattern=r"^[/*].{0,1000}$")] = None
    times: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @classmethod
    def of(cls, fault: Fault) -> Self:
        return cls(
            status=fault.status,
            delaySeconds=fault.delay_seconds,
            headers=dict(fault.headers),
            method=fault.method,
            path=fault.path,
            times=fault.times,
        )
