"""Tools of the MCP server: what a call has, what a tool is, and the text that it may return."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.core.http.validation import describe_problems
from hublet.core.schema import Schema
from hublet.mcp.records import Audience, ToolInfo
from hublet.tokens.auth import check_inbox_reader
from hublet.tokens.errors import FullTokenNeeded, ScopeNeeded, TokenNeeded
from hublet.tokens.records import Caller

# About 15,000 tokens: what a call returns stands in the context of a model.
MAX_TEXT = 60_000

Arguments = TypeVar("Arguments", bound=Schema)
# Progress so far, the whole if that is known, and a sentence.
Report = Callable[[float, float | None, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call: who calls, on which hub, and how to report progress."""

    # The request of the framework, for what routes take from it.
    request: Any
    database: Database
    # None: somebody without a token.
    caller: Caller | None
    report: Report
    # Set when the hub stops: who waits ends then.
    stopping: asyncio.Event

    @property
    def base_url(self) -> str:
        return self.database.hub.settings.base_url

    def get_caller(self) -> Caller:
        if self.caller is None:
            raise TokenNeeded
        return self.caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[Arguments]):
    info: ToolInfo
    arguments: type[Arguments]
    result: type[BaseModel]
    run: Callable[[ToolCall, Arguments], Awaitable[BaseModel]]

    async def call(self, call: ToolCall, arguments: dict[str, Any]) -> BaseModel:
        """Run the tool with the caller's rights; what is wrong is a HubError with a sentence."""
        check_caller(self.info, call.caller)
        return await self.run(call, read(self.arguments, arguments))


def missing_scopes(info: ToolInfo, caller: Caller) -> frozenset[str]:
    return info.scopes - caller.scopes


def check_caller(info: ToolInfo, caller: Caller | None) -> None:
    """Refuse who may not call a tool at all; what it does checks the rights to each thing."""
    if info.audience is Audience.everybody:
        return
    if caller is None:
        raise TokenNeeded
    if info.audience is Audience.inbox:
        check_inbox_reader(caller)
    elif missing := missing_scopes(info, caller):
        raise ScopeNeeded(missing)


def may_ever_call(info: ToolInfo, caller: Caller | None) -> bool:
    """Tell whether a caller should hear of a tool: a scope can be granted later, an inbox cannot."""
    if caller is None:
        return info.audience is Audience.everybody
    try:
        check_caller(info, caller)
    except FullTokenNeeded:
        return False
    except ScopeNeeded:
        # A person's own token is what it is; an app asks for more.
        return caller.token.app_id is not None
    return True


def read(model: type[Arguments], values: dict[str, Any]) -> Arguments:
    """Hold values to a schema; the sentence names the field and the rule."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> InvalidRequest:
    problems = [{**each, "loc": ("arguments", *each["loc"])} for each in error.errors()]
    return InvalidRequest(describe_problems(problems))


def cut(text: str, longest: int = MAX_TEXT) -> tuple[str, bool]:
    """Return the beginning of a text, and whether something is left out."""
    return text[:longest], len(text) > longest
