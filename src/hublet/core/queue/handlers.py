"""Which function runs which kind of task."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from hublet.core.database import Connection, Database
from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """How a kind of task is run.

    A quick one gets the transaction in which its task is also removed: both or neither.
    A slow one gets the database, may use the network, and is run beside others.
    """

    run: Callable[[Any, Any], Awaitable[None]]
    reads: Any
    slow: bool


handlers: dict[str, Handler] = {}


QuickRun = TypeVar("QuickRun", bound=Callable[[Connection, Any], Awaitable[None]])
SlowRun = TypeVar("SlowRun", bound=Callable[[Database, Any], Awaitable[None]])


def handles(kind: str, *, reads: Any = dict[str, Any]) -> Callable[[QuickRun], QuickRun]:
    """Register a quick handler; the body is decoded as the type it reads."""

    def register(run: QuickRun) -> QuickRun:
        handlers[kind] = Handler(run=run, reads=reads, slow=False)
        return run

    return register


def handles_slowly(kind: str, *, reads: Any = dict[str, Any]) -> Callable[[SlowRun], SlowRun]:
    """Register a slow handler: no transaction is open while it runs, and it may run again."""

    def register(run: SlowRun) -> SlowRun:
        handlers[kind] = Handler(run=run, reads=reads, slow=True)
        return run

    return register


def decode(handler: Handler, body: str) -> Any:
    return msgspec.json.decode(body, type=handler.reads)
