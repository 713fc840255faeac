"""Event streams that reconnect after a break, with exponential backoff."""

import threading
from collections.abc import Callable, Iterator

from hublet.client.errors import NotReachable, Refused
from hublet.client.events import Event, EventReader
from hublet.client.hub import Hub, Query

_FIRST_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def backoff(first: float = _FIRST_SECONDS) -> Iterator[float]:
    """Yield how long to wait before each further try."""
    seconds = first
    while True:
        yield seconds
        seconds = min(seconds * 2, MAX_BACKOFF_SECONDS)


_FIRST_SERVER_ERROR = 500
_TOO_MANY = 429


def follow(
    hub: Hub,
    path: str,
    query: Query | None = None,
    *,
    last_id: str | None = None,
    begun: Callable[[], None] | None = None,
    lost: Callable[[str], None] | None = None,
) -> Iterator[Event]:
    """Yield events for ever: after a break they go on behind the last one.

    That the first connection fails is an error, as is a refusal at any time. `begun` is called
    when a connection stands, `lost` is told why it ended. The hub may repeat what happened in
    the last seconds before a break.
    """
    reader, waits = EventReader(last_id, begun=begun), backoff()
    while True:
        reason = "the hub ended the stream"
        try:
            for event in hub.events(path, query, reader=reader):
                waits = backoff()
                yield event
        except NotReachable as error:
            if not reader.has_begun:
                raise
            reason = error.reason
        except Refused as error:
            if error.status < _FIRST_SERVER_ERROR and error.status != _TOO_MANY:
                raise
            reason = error.sentence
        if lost is not None:
            lost(reason)
        pause(max(next(waits), min(reader.retry_seconds or 0, MAX_BACKOFF_SECONDS)))
