"""The sentences a caller reads when a request is wrong."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from hublet.core.http.validation import describe_problems
from hublet.core.schema import Line, Schema, Timestamp


class Item(Schema):
    type: Literal["model", "dataset"]


class Body(Schema):
    name: Annotated[str, Field(min_length=2, max_length=5, pattern="^[a-z]+$")] = "ada"
    age: Annotated[int, Field(ge=1, le=9)] = 1
    flag: bool = True
    items: Annotated[list[Item], Field(min_length=1, max_length=2)] = Field(
        default_factory=lambda: [Item(type="model")]
    )
    when: Timestamp | None = None
    title: Line = "x"
    note: str = ""


def told(body: Any) -> str:
    with pytest.raises(ValidationError) as error:
        Body.model_validate(body)
    return describe_problems([{**e, "loc": ("body", *e["loc"])} for e in error.value.errors()])


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"name": "a"}, "name must have at least 2 character(s)."),
        ({"name": "abcdef"}, "name must have at most 5 characters."),
        ({"name": "AB"}, "name must match ^[a-z]+$."),
        ({"name": 7}, "name must be a string."),
        ({"age": 0}, "age must be at least 1."),
        ({"age": 10}, "age must be at most 9."),
        ({"age": 1.5}, "age must be an integer."),
        ({"flag": "maybe"}, "flag must be true or false."),
        ({"items": []}, "items must have at least 1 item(s)."),
        ({"items": [{"type": "model"}] * 3}, "items must have at most 2 items."),
        ({"items": [{}]}, "items[0].type is required."),
        ({"items": [{"type": "x"}]}, "items[0].type must be one of 'model' or 'dataset'."),
        ({"items": 3}, "items must be an array."),
        ({"items": [3]}, "items[0] must be an object."),
        ({"when": "soon"}, "when must be a timestamp such as 2026-11-15T01:44:56Z."),
        ({"title": "  "}, "title must have at least 1 character(s)."),
        ({"colour": "red"}, "colour is not a known field."),
        ({"name": "a\x00b"}, "The body: text must not contain the NUL character."),
        ({"note": "a\ud800b"}, "The body: text must be valid Unicode."),
        ([], "The body must be an object."),
        (b"{}", "The body must be JSON, with the header Content-Type: application/json."),
    ],
)
def test_a_sentence_names_the_field_and_the_rule(body: Any, sentence: str) -> None:
    assert told(body) == sentence


def test_every_problem_is_told_at_once() -> None:
    assert told({"name": "a", "age": 0}) == (
        "name must have at least 2 character(s). age must be at least 1."
    )


def test_a_flood_of_problems_is_cut() -> None:
    text = told({f"field{n}": 1 for n in range(30)})

    assert text.count("is not a known field") == 20
    assert text.endswith("And more problems.")


def test_what_was_sent_is_never_repeated() -> None:
    assert "s3cret" not in told({"name": "s3cret-value", "age": "s3cret", "when": "s3cret"})
