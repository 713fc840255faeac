"""Statements of a request, noted on their way to the database, whatever the engine."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hublet.core.database.engine import Reader


class Statements:
    """The statements of one task: what runs in the background at its own times does not count."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self._task: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        self.noted = []
        self._task = asyncio.current_task()

    def note(self, sql: str) -> None:
        if asyncio.current_task() is self._task:
            self.noted.append(sql)


def note_statements(monkeypatch: pytest.MonkeyPatch) -> Statements:
    """Notes statements, whatever the engine, on their way to the database."""
    statements = Statements()

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        async def note(self: Reader, sql: str, *values: Any) -> Any:
            statements.note(sql)
            return await method(self, sql, *values)

        return note

    for kind in _kinds_of(Reader):
        for name in {"fetch_all", "fetch_one", "execute", "claim"} & vars(kind).keys():
            monkeypatch.setattr(kind, name, noting(vars(kind)[name]))
    return statements


def _kinds_of(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds_of(each)
