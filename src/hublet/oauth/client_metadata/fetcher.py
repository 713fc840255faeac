"""HTTP fetcher of metadata documents and logos: guarded requests, freshness from the headers, and
single flight for each document.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.hub import ProcessState
from hublet.core.limits import Limiter, RateLimit
from hublet.core.outgoing import OutgoingClient, OutgoingRequest, OutgoingResponse
from hublet.oauth.apps.logos import MAX_LOGO_BYTES, validate_logo
from hublet.oauth.apps.records import Logo
from hublet.oauth.client_metadata.document import FetchedDocument
from hublet.oauth.errors import DocumentRefused
from hublet.oauth.records import OAuthApp

MAX_DOCUMENT_BYTES = 65_536
DEADLINE_SECONDS = 5.0
MAX_CONCURRENT_FETCHES = 8
FETCHES_OF_ONE_DOCUMENT = RateLimit(name="client-document", quota=10, window_seconds=60)
FETCHES_OF_ALL_DOCUMENTS = RateLimit(name="client-documents", quota=120, window_seconds=60)

MIN_FRESHNESS = timedelta(seconds=60)
MAX_FRESHNESS = timedelta(hours=24)
# When the site says nothing.
DEFAULT_FRESHNESS = timedelta(hours=1)

_OK = 200
_JSON = re.compile(r"application/(?:[a-z0-9.!#$&^_-]+\+)?json", re.IGNORECASE)
_LOGO_TYPES = {"image/png", "image/jpeg", "image/webp"}
_MAX_AGE = re.compile(r'max-age\s*=\s*"?([0-9]{1,12})"?', re.IGNORECASE)


async def fetch_document(settings: Settings, client_id: str) -> FetchedDocument:
    """Fetch a document; DocumentRefused unless the response is a plain 200."""
    response = await _get(settings, client_id, accept="application/json", most=MAX_DOCUMENT_BYTES)
    _check_response(response, most=MAX_DOCUMENT_BYTES)
    if not _JSON.fullmatch(_media_type(response.headers)):
        raise DocumentRefused("The document must come as application/json.")
    at = now()
    return FetchedDocument(
        body=response.body, fetched_at=at, fresh_until=at + freshness(response.headers, now=at)
    )


async def fetch_logo(settings: Settings, logo_uri: str) -> Logo | None:
    """Fetch the logo that a document names; None when there is no usable one."""
    response = await _get(settings, logo_uri, accept="image/*", most=MAX_LOGO_BYTES)
    try:
        _check_response(response, most=MAX_LOGO_BYTES)
        logo = validate_logo(response.body)
    except (DocumentRefused, HubError):
        return None
    return logo if logo.media_type in _LOGO_TYPES else None


async def _get(settings: Settings, url: str, *, accept: str, most: int) -> OutgoingResponse:
    request = OutgoingRequest(
        method="GET",
        url=url,
        headers={"Accept": accept},
        deadline_seconds=DEADLINE_SECONDS,
        # One byte more shows that the body is too large.
        keep_bytes=most + 1,
        read_bytes=most + 1,
    )
    # Documents are cached, so a client for each fetch is cheap enough.
    async with OutgoingClient(settings) as client:
        return await client.send(request)


def _check_response(response: OutgoingResponse, *, most: int) -> None:
    if response.reason is not None:
        raise DocumentRefused(response.detail)
    if response.status != _OK:
        # Redirects too: the address itself is the client id.
        raise DocumentRefused(f"The document must be answered with 200, not {response.status}.")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise DocumentRefused("The document must not be compressed.")
    if len(response.body) > most:
        raise DocumentRefused(f"The document must have at most {most} bytes.")


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip()


def freshness(headers: Mapping[str, str], *, now: datetime) -> timedelta:
    """Return how long a response is fresh: as the site says, but between a minute and a day.

    So a login needs one fetch, and a change is seen within a day.
    """
    directives = [each.strip() for each in headers.get("cache-control", "").split(",")]
    if {"no-store", "no-cache"} & {each.lower() for each in directives}:
        return MIN_FRESHNESS
    for directive in directives:
        if age := _MAX_AGE.fullmatch(directive):
            return _bounded(int(age[1]))
    if "expires" in headers:
        return _bounded(_seconds_until(headers["expires"], now))
    return DEFAULT_FRESHNESS


def _bounded(seconds: float) -> timedelta:
    within = min(max(seconds, MIN_FRESHNESS.total_seconds()), MAX_FRESHNESS.total_seconds())
    return timedelta(seconds=within)


def _seconds_until(text: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        # RFC 9111, 5.3: a broken date lies in the past.
        return 0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


class SingleFlight:
    """Single flight: requests for a document that is being fetched wait for that one fetch."""

    def __init__(self, *, quiet: bool, process: ProcessState) -> None:
        self._running: dict[str, asyncio.Task[OAuthApp]] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)
        self._limiter = Limiter(quiet=quiet, process=process)

    async def share(
        self, client_id: str, fetch: Callable[[], Coroutine[Any, Any, OAuthApp]]
    ) -> OAuthApp:
        task = self._running.get(client_id)
        if task is None:
            self._check_limits(client_id)
            task = asyncio.create_task(self._run(fetch), name="client-document")
            self._running[client_id] = task
            task.add_done_callback(partial(self._finish, client_id))
        # A request that is cancelled does not cancel the fetch for the others.
        return await asyncio.shield(task)

    def _check_limits(self, client_id: str) -> None:
        verdicts = (
            self._limiter.count(FETCHES_OF_ONE_DOCUMENT, client_id),
            self._limiter.count(FETCHES_OF_ALL_DOCUMENTS, ""),
        )
        if not all(verdict.allowed for verdict in verdicts):
            raise DocumentRefused("Documents were asked for too often; try again in a minute.")

    async def _run(self, fetch: Callable[[], Coroutine[Any, Any, OAuthApp]]) -> OAuthApp:
        async with self._slots:
            return await fetch()

    def _finish(self, client_id: str, task: asyncio.Task[OAuthApp]) -> None:
        del self._running[client_id]
        if not task.cancelled():
            # All requests may be cancelled; an error that nobody awaits would be logged.
            task.exception()


# What a process fetches belongs to the hub that it serves; tests have several in one process.
_single_flights: WeakKeyDictionary[Database, SingleFlight] = WeakKeyDictionary()


def single_flight_of(database: Database) -> SingleFlight:
    quiet, process = database.hub.settings.server.test_mode, database.hub.process
    return _single_flights.setdefault(database, SingleFlight(quiet=quiet, process=process))
