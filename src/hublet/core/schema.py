"""Shapes on the wire: closed objects, and the scalar types they share."""

from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from hublet.core.clock import wire


class Schema(BaseModel):
    """A closed object: a field that is not named here is an error, on the way in and out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_nul(cls, data: Any) -> Any:
        # PostgreSQL cannot store U+0000, so no engine takes it.
        if isinstance(data, dict) and any(_has_nul(value) for value in data.values()):
            raise ValueError("text must not contain the NUL character")
        return data


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(_has_nul, value))


ObjectId = Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]

# The clients need a literal Z at the end; "+00:00" makes them fail.
Timestamp = Annotated[
    AwareDatetime,
    PlainSerializer(wire, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": "Z$"}),
]


# A line a person typed: outer blanks do not count, and it may not be empty.
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Done(Schema):
    """It was done; there is nothing more to say."""
