"""Records of the outline, from which the Markdown and the page are rendered."""

from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    type: str
    rules: tuple[str, ...] = ()
    text: str = ""
    fields: tuple["Field", ...] = ()
    # The named schema that shows the fields, when they are not shown here.
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    required: bool
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    place: str
    required: bool
    text: str
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    media_type: str
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationResponse:
    status: str
    text: str
    contents: tuple[Content, ...]
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationError:
    status: str
    # What the operation itself says about it; empty for the errors that all share.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    id: str
    method: str
    path: str
    summary: str
    text: str
    access: str
    parameters: tuple[Parameter, ...]
    bodies: tuple[Content, ...]
    body_required: bool
    curl: str
    # Errors are apart, because all of them have one form.
    responses: tuple[OperationResponse, ...]
    errors: tuple[OperationError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    tag: str
    text: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    title: str
    version: str
    text: str
    base_url: str
    sections: tuple[Section, ...]
    empty_tags: tuple[str, ...]
    errors: tuple[OperationResponse, ...]
    headers: tuple[tuple[str, str], ...]
    schemas: tuple[tuple[str, Shape], ...]
