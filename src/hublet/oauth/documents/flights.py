"""Fetches that are under way: one for each document, few at a time, not too often."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from hublet.core.database import Database
from hublet.core.limits import Limiter, Policy
from hublet.oauth.documents.errors import DocumentRefused
from hublet.oauth.records import App

MAX_AT_A_TIME = 8
OF_ONE_DOCUMENT = Policy(name="client-document", quota=10, window_seconds=60)
OF_ALL_DOCUMENTS = Policy(name="client-documents", quota=120, window_seconds=60)


class Flights:
    """Whoever asks for a document that is on its way waits for that one."""

    def __init__(self, *, quiet: bool) -> None:
        self._open: dict[str, asyncio.Task[App]] = {}
        self._room = asyncio.Semaphore(MAX_AT_A_TIME)
        self._limiter = Limiter(quiet=quiet)

    async def share(self, client_id: str, fetch: Callable[[], Coroutine[Any, Any, App]]) -> App:
        task = self._open.get(client_id)
        if task is None:
            self._check_limits(client_id)
            task = asyncio.create_task(self._fly(fetch), name="client-document")
            self._open[client_id] = task
            task.add_done_callback(partial(self._land, client_id))
        # One who gives up does not take the document away from the others.
        return await asyncio.shield(task)

    def _check_limits(self, client_id: str) -> None:
        verdicts = (
            self._limiter.count(OF_ONE_DOCUMENT, client_id),
            self._limiter.count(OF_ALL_DOCUMENTS, ""),
        )
        if not all(verdict.allowed for verdict in verdicts):
            raise DocumentRefused("Documents were asked for too often; try again in a minute.")

    async def _fly(self, fetch: Callable[[], Coroutine[Any, Any, App]]) -> App:
        async with self._room:
            return await fetch()

    def _land(self, client_id: str, task: asyncio.Task[App]) -> None:
        del self._open[client_id]
        if not task.cancelled():
            # Everybody may have given up; an error that nobody awaits would be reported.
            task.exception()


# What a process fetches belongs to the hub that it serves; tests have several in one process.
_flights: WeakKeyDictionary[Database, Flights] = WeakKeyDictionary()


def flights_of(database: Database) -> Flights:
    quiet = database.hub.settings.server.test_mode
    return _flights.setdefault(database, Flights(quiet=quiet))
