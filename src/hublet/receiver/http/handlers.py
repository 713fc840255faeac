"""A handler: its arguments out of a request, and the call, in time or not."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.background import BackgroundTasks
from starlette.exceptions import HTTPException

from hublet.receiver.http.answers import Refused, Reply, detail, failed, reply_with
from hublet.receiver.http.parameters import Parameter, Source, parameters_of
from hublet.receiver.http.requests import Received

log = logging.getLogger("hublet.receiver")

_Told = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A handler with its arguments; `background` is to run after the answer."""

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

    def prepare(self, received: Received) -> Call:
        """Find every argument; what is wrong with the request is told at once, as a whole."""
        arguments: dict[str, Any] = {}
        wrong: _Told = []
        background = None
        for each in self.parameters:
            if each.source is Source.request:
                arguments[each.name] = received.as_request()
            elif each.source is Source.background:
                arguments[each.name] = background = background or each.kind()
            else:
                _validate(each, received, arguments, wrong)
        if wrong:
            raise Refused(detail(HTTPStatus.UNPROCESSABLE_ENTITY, wrong))
        return Call(handler=self, arguments=arguments, background=background)


def _validate(
    parameter: Parameter, received: Received, arguments: dict[str, Any], wrong: _Told
) -> None:
    place = "body" if parameter.source is Source.body else "query"
    try:
        if place == "body":
            arguments[parameter.name] = _from_body(parameter, received.body)
        else:
            arguments[parameter.name] = _from_query(parameter, received)
    except ValidationError as found:
        at = [place] if place == "body" else [place, parameter.name]
        wrong.extend(
            {"type": each["type"], "loc": [*at, *each["loc"]], "msg": each["msg"]}
            for each in found.errors(include_url=False, include_input=False)
        )
    except _Missing:
        loc = [place] if place == "body" else [place, parameter.name]
        wrong.append({"type": "missing", "loc": loc, "msg": "Field required"})


class _Missing(Exception):
    pass


def _from_body(parameter: Parameter, body: bytes) -> Any:
    if body:
        return parameter.adapter.validate_json(body)
    return _default(parameter)


def _from_query(parameter: Parameter, received: Received) -> Any:
    query = parse_qs(received.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if parameter.name in query:
        return parameter.adapter.validate_python(query[parameter.name][-1])
    return _default(parameter)


def _default(parameter: Parameter) -> Any:
    if parameter.is_needed:
        raise _Missing
    return parameter.default


async def perform(call: Call) -> Reply:
    """Run the handler to its end; whatever it raises becomes an answer that says no reason."""
    try:
        return reply_with(await run(call))
    except HTTPException as refusal:
        return detail(refusal.status_code, refusal.detail, refusal.headers)
    except Exception:
        log.exception("The handler of %s failed.", call.handler.path)
        return failed()


async def run(call: Call) -> Any:
    """Return what the handler returns, and raise what it raises."""
    handler = call.handler
    if handler.is_async:
        return await handler.function(**call.arguments)
    return await asyncio.to_thread(handler.function, **call.arguments)
