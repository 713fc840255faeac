"""Outline of the description: every word that readers see, without markup; and the search in it: the
operations that have all words of a query, the best first.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.description.examples import curl_of
from hublet.description.operations import scope_sentence
from hublet.description.records import (
    Content,
    Operation,
    OperationError,
    OperationResponse,
    Outline,
    Parameter,
    Section,
    Shape,
)
from hublet.description.shapes import Schemas, links_in, shape_of
from hublet.search.words import split


def outline_of(description: dict[str, Any]) -> Outline:
    by_tag = _operations_by_tag(description)
    components = description["components"]
    sections = tuple(
        Section(tag=tag["name"], text=tag["description"], operations=tuple(by_tag[tag["name"]]))
        for tag in description["tags"]
        if tag["name"] in by_tag
    )
    return Outline(
        title=description["info"]["title"],
        version=description["info"]["version"],
        text=description["info"]["description"],
        base_url=description["servers"][0]["url"],
        sections=sections,
        empty_tags=tuple(t["name"] for t in description["tags"] if t["name"] not in by_tag),
        errors=tuple(
            _response(name.removeprefix("Error"), response, components["schemas"])
            for name, response in components["responses"].items()
        ),
        headers=tuple((name, head["description"]) for name, head in components["headers"].items()),
        schemas=_linked_schemas(sections, components["schemas"]),
    )


def _operations_by_tag(description: dict[str, Any]) -> dict[str, list[Operation]]:
    by_tag: dict[str, list[Operation]] = {}
    for path, operations in description["paths"].items():
        for method, raw in operations.items():
            operation = _operation(raw, method=method.upper(), path=path, root=description)
            # An operation with several tags is shown once, under its first.
            by_tag.setdefault(raw["tags"][0], []).append(operation)
    return by_tag


def _operation(raw: dict[str, Any], *, method: str, path: str, root: dict[str, Any]) -> Operation:
    schemas = root["components"]["schemas"]
    sentence = _scope_sentence(raw)
    responses = raw["responses"]
    return Operation(
        id=raw["operationId"],
        method=method,
        path=path,
        summary=raw["summary"],
        text=raw["description"].removesuffix(sentence).rstrip(),
        access=sentence or _access(raw["security"]),
        parameters=tuple(_parameter(part, schemas) for part in raw.get("parameters", [])),
        bodies=_contents(raw.get("requestBody", {}), schemas),
        body_required=raw.get("requestBody", {}).get("required", False),
        curl=curl_of(
            method=method,
            url=root["servers"][0]["url"] + path,
            operation=raw,
            schemas=schemas,
            token=any("bearer" in each for each in raw["security"]) and {} not in raw["security"],
        ),
        responses=tuple(_response(s, r, schemas) for s, r in responses.items() if not _is_error(r)),
        errors=tuple(
            OperationError(status=status, text=response.get("description", ""))
            for status, response in responses.items()
            if _is_error(response)
        ),
    )


def _scope_sentence(raw: dict[str, Any]) -> str:
    return scope_sentence([name for choice in raw["security"] for name in choice.get("bearer", [])])


def _access(security: list[dict[str, Any]]) -> str:
    if not security:
        return "No token needed."
    if not any("bearer" in choice for choice in security):
        return "No token needed: the caller is an app."
    return "A token is optional." if {} in security else "Needs a token."


def _is_error(response: dict[str, Any]) -> bool:
    if "$ref" in response:
        return True
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith(("/Error", "/OAuthRefusal")))


def _parameter(raw: dict[str, Any], schemas: Schemas) -> Parameter:
    text = raw.get("description", "")
    if raw.get("x-may-contain-slashes"):
        text = f"{text} May contain slashes.".strip()
    return Parameter(
        name=raw["name"],
        place=raw["in"],
        required=raw.get("required", False),
        text=text,
        shape=shape_of(raw["schema"], schemas),
    )


def _contents(holder: dict[str, Any], schemas: Schemas) -> tuple[Content, ...]:
    return tuple(
        Content(media_type=media_type, shape=shape_of(content.get("schema", {}), schemas))
        for media_type, content in holder.get("content", {}).items()
    )


def _response(status: str, response: dict[str, Any], schemas: Schemas) -> OperationResponse:
    return OperationResponse(
        status=status,
        text=response["description"],
        contents=_contents(response, schemas),
        headers=tuple(response.get("headers", {})),
    )


def _linked_schemas(
    sections: tuple[Section, ...], schemas: Schemas
) -> tuple[tuple[str, Shape], ...]:
    """Collect the schemas that are shown by name, and those that they name in turn."""
    shapes: dict[str, Shape] = {}
    waiting = [link for section in sections for link in _links(section)]
    while waiting:
        name = waiting.pop()
        if name not in shapes:
            shapes[name] = shape_of(schemas[name], schemas)
            waiting += links_in(shapes[name])
    return tuple(sorted(shapes.items()))


def _links(section: Section) -> Iterator[str]:
    for operation in section.operations:
        contents = [each for response in operation.responses for each in response.contents]
        for content in (*operation.bodies, *contents):
            yield from links_in(content.shape)


# How much more a word counts where the reader looks first.
_IN_TITLE, _IN_TAG, _IN_TEXT = 4, 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOperation:
    section: Section
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    found: FoundOperation
    title: frozenset[str]
    tag: frozenset[str]
    text: frozenset[str]

    def weight_of(self, word: str) -> int:
        """Return how much a word, or the beginning of one, counts here; 0 when it is not here."""
        places = ((self.title, _IN_TITLE), (self.tag, _IN_TAG), (self.text, _IN_TEXT))
        return next((weight for words, weight in places if _begins_any(words, word)), 0)


def _begins_any(words: Iterable[str], beginning: str) -> bool:
    return any(word.startswith(beginning) for word in words)


class DescriptionSearch:
    """The words of every operation, read once for each app."""

    def __init__(self, outline: Outline) -> None:
        self._entries = tuple(_entries_of(outline))

    def find(self, query: str, *, limit: int) -> list[FoundOperation]:
        words = split(query)
        ranked: list[tuple[int, FoundOperation]] = []
        for entry in self._entries:
            weights = [entry.weight_of(word) for word in words]
            if weights and all(weights):
                ranked.append((-sum(weights), entry.found))
        ranked.sort(key=lambda each: each[0])
        return [found for _, found in ranked[:limit]]


def _entries_of(outline: Outline) -> Iterator[_Entry]:
    for section in outline.sections:
        for operation in section.operations:
            named = f"{operation.method} {operation.path} {operation.summary}"
            fields = " ".join(
                f"{parameter.name} {parameter.text}" for parameter in operation.parameters
            )
            yield _Entry(
                found=FoundOperation(section=section, operation=operation),
                title=frozenset(split(named)),
                tag=frozenset(split(f"{section.tag} {section.text}")),
                text=frozenset(split(f"{operation.text} {operation.access} {fields}")),
            )
