"""Handlers: dependency injection by annotation, the call, and the work after the response.

FastAPI itself would carry the injection, but at half the deliveries per second and with an import
that costs every script 0.4 s (docs/decisions/0027).
"""

import asyncio
import inspect
import logging
import types
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from starlette.background import BackgroundTasks
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope

from hublet.receiver.requests import request_with_body
from hublet.receiver.responses import RequestRefused, detail_response, response_of, server_error
from hublet.receiver.schemas import WebhookPayload

log = logging.getLogger("hublet.receiver")

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
    # The class of background tasks to create; FastAPI has its own.
    factory: Any = None

    @property
    def is_required(self) -> bool:
        return self.default is _EMPTY


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the signature; a parameter that no request can supply is a TypeError."""
    hints = _type_hints(function)
    parameters = [
        _parameter(each, hints.get(name, each.annotation), function)
        for name, each in inspect.signature(function).parameters.items()
        if each.kind not in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    ]
    supplied = [each for each in parameters if each is not None]
    bodies = [each.name for each in supplied if each.source is Source.body]
    if len(bodies) > 1:
        raise TypeError(f"A handler takes one payload, {name_of(function)} wants {bodies}.")
    return tuple(supplied)


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(called, include_extras=True)
    except (NameError, TypeError):
        # Names that only a type checker can resolve; the parameters' names are enough then.
        return {}


def _parameter(
    given: inspect.Parameter, annotation: Any, function: Callable[..., Any]
) -> Parameter | None:
    if given.kind not in _BY_NAME:
        raise TypeError(f"{name_of(function)} cannot be given {given.name} by its name.")
    for each in (given.default, *_annotated_metadata(annotation)):
        if type(each).__module__.partition(".")[0] == "fastapi":
            marker = type(each).__name__
            raise TypeError(
                f"{name_of(function)} asks for {marker}(…), which needs FastAPI itself."
            )
    if annotation is _EMPTY or isinstance(annotation, str):
        if given.name != "request" and given.default is not _EMPTY:
            return None
        annotation = Request if given.name == "request" else WebhookPayload
    plain = _bare_type(annotation)
    source = _source(plain, given.name)
    # Only what is validated needs an adapter of its own.
    adapter: TypeAdapter[Any] = TypeAdapter(
        annotation if source in {Source.body, Source.query} else Any
    )
    return Parameter(
        name=given.name,
        source=source,
        adapter=adapter,
        default=given.default,
        factory=plain if source is Source.background else None,
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


def _bare_type(annotation: Any) -> Any:
    """Return X for `Annotated[X, …]` and `X | None`."""
    if get_origin(annotation) is Annotated:
        return _bare_type(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        others = [each for each in get_args(annotation) if each is not type(None)]
        return _bare_type(others[0]) if len(others) == 1 else annotation
    return annotation


def _annotated_metadata(annotation: Any) -> Iterator[Any]:
    """Yield the metadata of every `Annotated[X, …]` inside an annotation."""
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
    for each in get_args(annotation):
        yield from _annotated_metadata(each)


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCall:
    """A handler with its arguments; `background` runs after the response."""

    handler: "Handler"
    arguments: dict[str, Any]
    background: BackgroundTasks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    path: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    is_async: bool
    reads_body: bool

    @classmethod
    def of(cls, path: str, function: Callable[..., Any]) -> Self:
        parameters = parameters_of(function)
        return cls(
            path=path,
            function=function,
            parameters=parameters,
            reads_body=any(each.source is Source.body for each in parameters),
            is_async=inspect.iscoroutinefunction(function)
            or inspect.iscoroutinefunction(getattr(function, "__call__", None)),  # noqa: B004 - an object may be a coroutine function too
        )

    def prepare(self, scope: Scope, body: bytes) -> HandlerCall:
        """Build the arguments; refuse the request with everything that is wrong with it at once."""
        arguments: dict[str, Any] = {}
        errors: list[dict[str, Any]] = []
        background = None
        for each in self.parameters:
            if each.source is Source.request:
                arguments[each.name] = request_with_body(scope, body)
            elif each.source is Source.background:
                arguments[each.name] = background = background or each.factory()
            else:
                try:
                    arguments[each.name] = _validate(each, scope, body)
                except ValidationError as invalid:
                    errors.extend(_described(each, invalid))
        if errors:
            raise RequestRefused(detail_response(HTTPStatus.UNPROCESSABLE_ENTITY, errors))
        return HandlerCall(handler=self, arguments=arguments, background=background)


def _validate(parameter: Parameter, scope: Scope, body: bytes) -> Any:
    if parameter.source is Source.body:
        if body:
            return parameter.adapter.validate_json(body)
    elif (value := QueryParams(scope["query_string"]).get(parameter.name)) is not None:
        return parameter.adapter.validate_python(value)
    if parameter.is_required:
        raise _missing()
    return parameter.default


def _missing() -> ValidationError:
    """Return Pydantic's own error for a missing value: "Field required"."""
    return ValidationError.from_exception_data("request", [{"type": "missing", "input": None}])


def _described(parameter: Parameter, invalid: ValidationError) -> Iterator[dict[str, Any]]:
    at = ["body"] if parameter.source is Source.body else ["query", parameter.name]
    for each in invalid.errors(include_url=False, include_input=False):
        yield {"type": each["type"], "loc": [*at, *each["loc"]], "msg": each["msg"]}


async def respond(call: HandlerCall) -> Response:
    """Run the handler; an exception of it becomes a response without the reason."""
    try:
        return response_of(await run_handler(call))
    except HTTPException as refusal:
        return detail_response(refusal.status_code, refusal.detail, refusal.headers)
    except Exception:
        log.exception("The handler of %s failed.", call.handler.path)
        return server_error()


async def run_handler(call: HandlerCall) -> Any:
    """Call the handler, in a thread if it blocks."""
    handler = call.handler
    if handler.is_async:
        return await handler.function(**call.arguments)
    return await asyncio.to_thread(handler.function, **call.arguments)


async def run_to_end(call: HandlerCall, scope: Scope) -> bool:
    """Run the handler and its background tasks; return whether all of that succeeded.

    The result is sent to nobody, so its form does not matter, but work inside of it is done.
    """
    try:
        result = await run_handler(call)
        return (
            _is_success(result)
            and await _drain_result(result, scope)
            and await run_background(call)
        )
    except HTTPException as refusal:
        return refusal.status_code < HTTPStatus.BAD_REQUEST and await run_background(call)
    except Exception:
        log.exception("The handler of %s failed.", call.handler.path)
        return False


async def run_background(call: HandlerCall) -> bool:
    """Run the handler's background tasks; return whether they succeeded."""
    try:
        if call.background is not None:
            await call.background()
    except Exception:
        log.exception("A background task of %s failed.", call.handler.path)
        return False
    return True


def _is_success(result: Any) -> bool:
    return not isinstance(result, Response) or result.status_code < HTTPStatus.BAD_REQUEST


async def _drain_result(result: Any, scope: Scope) -> bool:
    if isinstance(result, Response):
        # Sent to nobody: a stream is read to its end, and the response's background task runs.
        await result(scope, _receive_nothing, _drop_message)
    elif isinstance(result, Generator):
        await asyncio.to_thread(deque, result, 0)
    elif isinstance(result, Awaitable | AsyncIterator):
        kind = type(result).__name__
        raise TypeError(f"It returned a {kind}, which nobody runs; is it to be an async function?")
    return True


async def _receive_nothing() -> Message:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


async def _drop_message(_message: Message) -> None:
    pass
