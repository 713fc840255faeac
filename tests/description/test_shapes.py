"""What of a schema is shown in place, and what by name."""

from typing import Any

from hublet.description.records import Field, Shape
from hublet.description.shapes import links_in, shape_of

TEXT = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "Small": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
    "Big": {"type": "object", "properties": {f"f{n}": TEXT for n in range(9)}},
    "Tree": {
        "type": "object",
        "properties": {"left": {"$ref": "#/components/schemas/Tree"}},
    },
    "Cat": {"type": "object", "properties": {"kind": {"const": "cat"}}},
    "Dog": {"type": "object", "properties": {"name": TEXT}},
}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def holding(schema: dict[str, Any]) -> Shape:
    """The shape of a schema as the field of an object."""
    return shape_of({"type": "object", "properties": {"it": schema}}, SCHEMAS).fields[0].shape


def test_a_small_schema_is_shown_in_place() -> None:
    a = Field(name="a", required=True, shape=Shape(type="string"))

    assert holding(ref("Small")) == Shape(type="object", fields=(a,))


def test_the_fields_of_items_are_the_fields_of_the_array() -> None:
    a = Field(name="a", required=True, shape=Shape(type="string"))

    assert holding({"type": "array", "items": ref("Small")}) == Shape(
        type="array of object", fields=(a,)
    )


def test_a_big_schema_is_shown_by_name() -> None:
    assert holding(ref("Big")) == Shape(type="object", link="Big")
    assert holding({"type": "array", "items": ref("Big")}) == Shape(
        type="array of object", link="Big"
    )
    assert holding({"anyOf": [ref("Big"), {"type": "null"}]}) == Shape(
        type="object or null", link="Big"
    )


def test_a_big_schema_is_shown_in_place_where_it_is_the_whole() -> None:
    shape = shape_of(ref("Big"), SCHEMAS)

    assert shape.link is None
    assert [field.name for field in shape.fields] == [f"f{n}" for n in range(9)]


def test_a_schema_within_itself_is_shown_by_name() -> None:
    shape = shape_of(ref("Tree"), SCHEMAS)

    assert [field.shape.link for field in shape.fields] == ["Tree"]
    assert list(links_in(shape)) == ["Tree"]


def test_a_variant_is_named_by_its_constant_or_by_its_schema() -> None:
    shape = shape_of({"oneOf": [ref("Cat"), ref("Dog"), {"type": "null"}]}, SCHEMAS)

    assert shape.type == "object or null"
    assert [field.name for field in shape.fields] == ["when kind is cat", "variant 2: Dog"]


def test_a_field_keeps_its_rules_and_its_text() -> None:
    schema = {"type": "string", "maxLength": 3, "description": "Short."}

    assert holding(schema) == Shape(type="string", rules=("at most 3 characters",), text="Short.")
