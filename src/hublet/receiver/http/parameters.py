"""Where each parameter of a handler gets its value from, found by its annotation and its name."""

import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from starlette.background import BackgroundTasks
from starlette.requests import Request

from hublet.receiver.schemas import WebhookPayload

_SCALARS = (str, int, float, bool)
_EMPTY = inspect.Parameter.empty
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Source(Enum):
    body = auto()
    query = auto()
    request = auto()
    background = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    source: Source
    adapter: TypeAdapter[Any]
    default: Any = _EMPTY
    # The class that is to be made; a framework may have its own.
    kind: Any = None

    @property
    def is_needed(self) -> bool:
        return self.default is _EMPTY


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the signature; what a handler cannot be given is said when it is registered."""
    hints = _hints(function)
    found = [
        _parameter(each, hints.get(name, each.annotation), function)
        for name, each in inspect.signature(function).parameters.items()
        if each.kind not in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    ]
    kept = [each for each in found if each is not None]
    bodies = [each.name for each in kept if each.source is Source.body]
    if len(bodies) > 1:
        raise TypeError(f"A handler takes one payload, {_name(function)} wants {bodies}.")
    return tuple(kept)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(called, include_extras=True)
    except (NameError, TypeError):
        # Names that only a type checker sees: the names of the parameters tell enough.
        return {}


def _parameter(
    given: inspect.Parameter, annotation: Any, function: Callable[..., Any]
) -> Parameter | None:
    if given.kind not in _BY_NAME:
        raise TypeError(f"{_name(function)} cannot be given {given.name} by its name.")
    for each in (given.default, *_notes(annotation)):
        if type(each).__module__.partition(".")[0] == "fastapi":
            marker = type(each).__name__
            raise TypeError(f"{_name(function)} asks for {marker}(…), which needs FastAPI itself.")
    if annotation is _EMPTY or isinstance(annotation, str):
        if given.name != "request" and given.default is not _EMPTY:
            return None
        annotation = Request if given.name == "request" else WebhookPayload
    plain = _plain(annotation)
    source = _source(plain, given.name)
    made = plain if source is Source.background else None
    # What is not validated needs no adapter that could do it.
    adapter: TypeAdapter[Any] = TypeAdapter(
        annotation if source in {Source.body, Source.query} else Any
    )
    return Parameter(
        name=given.name, source=source, adapter=adapter, default=given.default, kind=made
    )


def _source(plain: Any, name: str) -> Source:
    if isinstance(plain, type):
        if issubclass(plain, Request):
            return Source.request
        if issubclass(plain, BackgroundTasks):
            return Source.background
        if issubclass(plain, (*_SCALARS, Enum)):
            return Source.query
    # Client contract 2.3: a parameter of this name receives the request.
    return Source.request if name == "request" else Source.body


def _plain(annotation: Any) -> Any:
    """Return the class itself of `Annotated[X, …]` and `X | None`."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        others = [each for each in get_args(annotation) if each is not type(None)]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation


def _notes(annotation: Any) -> Iterator[Any]:
    """Yield what stands beside the class in `Annotated[X, …]`, wherever in an annotation."""
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
    for each in get_args(annotation):
        yield from _notes(each)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__
