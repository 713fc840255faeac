"""Base of the wire schemas: closed objects, and the scalar types they share."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticKnownError

from hublet.core.clock import wire

# A caller reads no more of them than this, and one more says that there are more.
MAX_PROBLEMS = 20

_CONTAINERS = frozenset({"list", "set", "frozenset", "tuple", "dict"})
_WITHOUT_SCHEMAS = frozenset({"default", "expected", "metadata", "serialization"})


def _stop_early(schema: Any) -> None:
    """Let every array and map end at its first wrong value: there may be half a million of them."""
    if isinstance(schema, list | tuple):
        for part in schema:
            _stop_early(part)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if isinstance(kind, str) and kind in _CONTAINERS:
            schema["fail_fast"] = True
        for name, part in schema.items():
            if name not in _WITHOUT_SCHEMAS:
                _stop_early(part)


class Schema(BaseModel):
    """A closed object: a field that is not named here is an error, on the way in and out.

    Its checks are made when it is first used: all together they would be a fifth of a start.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.model_config["defer_build"] = True

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        # The class is made. What the framework makes of it must not wait: it would then warn of
        # its own doing.
        cls.model_config["defer_build"] = False

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _stop_early(schema)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _refuse_nul(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if len(data) > len(cls.model_fields) + MAX_PROBLEMS:
            data = cls._drop_surplus(data)
        # PostgreSQL cannot store U+0000, so no engine takes it.
        if any(_contains(_has_nul, value) for value in data.values()):
            raise ValueError("text must not contain the NUL character")
        return data

    @classmethod
    def _drop_surplus(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Drop unknown fields that nobody will be told of: each would cost an error of its own."""
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = [name for name in data if name not in known]
        surplus = frozenset(unknown[MAX_PROBLEMS + 1 :])
        return {name: value for name, value in data.items() if name not in surplus}

    @model_validator(mode="after")
    def _refuse_half_characters(self) -> Self:
        # Nothing can write half a surrogate pair. Where a text has a longest length, Pydantic
        # has found it before and named the field.
        if any(_contains(_is_broken, value) for value in self.__dict__.values()):
            raise ValueError("text must be valid Unicode")
        return self


def _has_nul(text: str) -> bool:
    return "\x00" in text


def _is_broken(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# Half a million of them fit into a body.
_NEVER_TEXT = frozenset({int, float, bool, type(None)})


def _contains(is_wrong: Callable[[str], bool], value: Any) -> bool:
    """Tell whether any text in it, at any depth, is wrong."""
    if isinstance(value, str):
        return is_wrong(value)
    if isinstance(value, dict):
        return any(_contains(is_wrong, part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(
        _contains(is_wrong, part) for part in value if type(part) not in _NEVER_TEXT
    )


# A boolean of a request: "yes", 1 and the like are none.
Flag = Annotated[bool, Field(strict=True)]


def _check_written_out(value: Any) -> Any:
    # Pydantic takes numbers, also those in a text, for seconds since 1970; nobody means that.
    is_number = isinstance(value, int | float)
    if is_number or (isinstance(value, str) and not _DATE.match(value)):
        raise PydanticKnownError("datetime_parsing", {"error": "it begins with no date"})
    return value


_DATE = re.compile(r"\d{4}-\d\d-\d\d")

# A moment in a request, with its time zone.
Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_check_written_out),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]

ObjectId = Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]

# The clients need a literal Z at the end; "+00:00" makes them fail.
Timestamp = Annotated[
    Moment,
    PlainSerializer(wire, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": "Z$"}),
]


CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _check_one_line(text: str) -> str:
    if CONTROL_CHARACTERS.search(text):
        raise ValueError("must be a single line without control characters")
    return text


# Titles and names stand in headers of mails, in logs and in terminals.
ONE_LINE = AfterValidator(_check_one_line)

# A line a person typed: outer blanks do not count, and it may not be empty.
Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), ONE_LINE
]


class Done(Schema):
    """It was done; there is nothing more to say."""
