"""Markdown rendering of the description, fit for a terminal."""

from collections.abc import Iterator, Sequence
from typing import Any

from hublet.description.outline import outline_of
from hublet.description.records import (
    Field,
    Operation,
    OperationResponse,
    Outline,
    Parameter,
    Section,
    Shape,
)


def to_markdown(description: dict[str, Any]) -> str:
    return "\n".join(_lines(outline_of(description))) + "\n"


def _lines(outline: Outline) -> Iterator[str]:
    yield from (f"# {outline.title} API {outline.version}", "", outline.text, "")
    yield from (f"Base address: `{outline.base_url}`", "")
    yield from _contents_list(outline)
    yield from _authentication()
    yield from _errors(outline)
    for section in outline.sections:
        yield from _section(section)
    if outline.schemas:
        yield from ("## Schemas", "")
    for name, shape in outline.schemas:
        yield from (f"### Schema {name}", "", *_shape_lines(shape), "")


def _contents_list(outline: Outline) -> Iterator[str]:
    yield from ("## Operations", "")
    for section in outline.sections:
        yield f"- {section.tag}: {section.text}"
        for operation in section.operations:
            yield f"  - `{operation.method} {operation.path}` {operation.summary}"
    yield ""
    yield "An operation of the public service that this hub does not have answers 501."
    if outline.empty_tags:
        yield f"Groups without operations here: {', '.join(outline.empty_tags)}."
    yield ""


def _authentication() -> Iterator[str]:
    yield from ("## Authentication", "")
    yield "Send `Authorization: Bearer $HF_TOKEN` with every request, unless an operation says"
    yield "that it needs no token. An operation that names a scope refuses tokens without it."
    yield ""


def _errors(outline: Outline) -> Iterator[str]:
    yield from ("## Errors", "", "Every error has one form:", "")
    yield from ("```json", '{"error": "What went wrong, in a sentence."}', "```", "")
    yield from _table(("status", "meaning"), [(a.status, a.text) for a in outline.errors])
    yield from ("", "Headers:", "")
    yield from _table(("header", "meaning"), [(f"`{n}`", text) for n, text in outline.headers])
    yield ""


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {section.tag}", "", section.text, "")
    for operation in section.operations:
        yield from _operation(operation)


def _operation(operation: Operation) -> Iterator[str]:
    yield from (f"### {operation.method} {operation.path}", "")
    yield from (f"{operation.text} {operation.access}".strip(), "")
    if operation.parameters:
        rows = [_parameter_row(parameter) for parameter in operation.parameters]
        yield from (*_table(("parameter", "in", "type", "rules"), rows), "")
    for body in operation.bodies:
        need = "required" if operation.body_required else "optional"
        yield from (f"Body, `{body.media_type}`, {need}:", "", *_shape_lines(body.shape), "")
    yield from ("```sh", operation.curl, "```", "", "Answers:", "")
    for response in operation.responses:
        yield from _response_lines(response)
    yield from (*_operation_errors(operation), "")


def _parameter_row(parameter: Parameter) -> tuple[str, ...]:
    need = "required" if parameter.required else "optional"
    rules = "; ".join((need, *parameter.shape.rules))
    place = f"`{parameter.name}`", parameter.place, parameter.shape.type
    return (*place, f"{rules}. {parameter.text}" if parameter.text else rules)


def _response_lines(response: OperationResponse) -> Iterator[str]:
    headers = [name for name in response.headers if name != "X-Request-Id"]
    more = f" (headers {', '.join(f'`{name}`' for name in headers)})" if headers else ""
    if not response.contents:
        yield f"- `{response.status}` {response.text}{more}"
    for content in response.contents:
        yield f"- `{response.status}` {response.text}, `{content.media_type}`: {_linked(content.shape)}{more}"
        yield from _field_lines(content.shape.fields, depth=1)


def _operation_errors(operation: Operation) -> Iterator[str]:
    for error in operation.errors:
        if error.text:
            yield f"- `{error.status}` {error.text}"
    shared = [f"`{error.status}`" for error in operation.errors if not error.text]
    if shared:
        yield f"- {', '.join(shared)}: see [Errors](#errors)"


def _shape_lines(shape: Shape) -> Iterator[str]:
    if not shape.fields:
        yield "- " + "; ".join((_linked(shape), *shape.rules))
    yield from _field_lines(shape.fields, depth=0)


def _field_lines(fields: Sequence[Field], *, depth: int) -> Iterator[str]:
    for field in fields:
        shape = field.shape
        about = ", ".join((_linked(shape), "required")) if field.required else _linked(shape)
        says = ". ".join(filter(None, ("; ".join(shape.rules), shape.text)))
        yield f"{'  ' * depth}- `{field.name}` ({about})" + (f": {says}" if says else "")
        yield from _field_lines(shape.fields, depth=depth + 1)


def _linked(shape: Shape) -> str:
    return f"{shape.type}, see [{shape.link}]({_anchor(shape.link)})" if shape.link else shape.type


def _anchor(name: str) -> str:
    return f"#schema-{name.lower()}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    # Padded, because a terminal shows the source. The last column may be long: it stays ragged.
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head) - 1)]
    widths.append(len(head[-1]))
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    yield from (lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:])
