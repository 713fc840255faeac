"""Server-sent events: their parser, and streams that reconnect with exponential backoff."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hublet.client.errors import NotReachable, Refused

if TYPE_CHECKING:
    from hublet.client.hub import Hub, Query

FIRST_SERVER_ERROR = 500
MAX_BACKOFF_SECONDS = 30.0

_FIRST_SECONDS = 1.0
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    name: str
    data: str
    # The id of this event, or of the last one that had an id.
    id: str | None

    def read(self) -> Any:
        """Return the data as JSON."""
        return json.loads(self.data)


class EventReader:
    """Parses lines into events, and remembers where to continue after a lost connection."""

    def __init__(
        self, last_id: str | None = None, *, on_connect: Callable[[], None] | None = None
    ) -> None:
        """`on_connect` is called when a connection has sent its first line."""
        self.last_id = last_id
        # How long the hub asks to wait before reconnecting.
        self.retry_seconds: float | None = None
        self.has_connected = False
        self._on_connect = on_connect
        self._is_new_connection = True
        self._name = ""
        self._data: list[str] = []
        self._id = last_id

    def feed(self, line: str) -> Event | None:
        """Parse a line without its end; return the event that it completes."""
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = int(value) / 1000
        return None

    def restart(self) -> None:
        """Prepare for a new connection: an event that was cut off comes again."""
        self._name, self._data, self._id = "", [], self.last_id
        self._is_new_connection = True

    def _complete(self) -> Event | None:
        if self._is_new_connection:
            self._is_new_connection, self.has_connected = False, True
            if self._on_connect is not None:
                self._on_connect()
        name, data = self._name, self._data
        self._name, self._data = "", []
        # An id without data is no event, but the position to continue from.
        self.last_id = self._id
        if not data:
            return None
        return Event(name=name or "message", data="\n".join(data), id=self.last_id)


def follow(
    hub: "Hub",
    path: str,
    query: "Query | None" = None,
    *,
    last_id: str | None = None,
    on_connect: Callable[[], None] | None = None,
    on_disconnect: Callable[[str], None] | None = None,
) -> Iterator[Event]:
    """Yield events for ever: after a lost connection they continue behind the last one.

    A failure of the first connection is an error, as is a refusal at any time. `on_disconnect`
    is called with the reason. The hub may repeat events of the last seconds before it.
    """
    reader, waits = EventReader(last_id, on_connect=on_connect), backoff()
    while True:
        reason = "the hub ended the stream"
        try:
            for event in hub.events(path, query, reader=reader):
                waits = backoff()
                yield event
        except NotReachable as error:
            if not reader.has_connected:
                raise
            reason = error.reason
        except Refused as error:
            if error.status < FIRST_SERVER_ERROR and error.status != _TOO_MANY_REQUESTS:
                raise
            reason = error.sentence
        if on_disconnect is not None:
            on_disconnect(reason)
        pause(max(next(waits), min(reader.retry_seconds or 0, MAX_BACKOFF_SECONDS)))


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def backoff(first: float = _FIRST_SECONDS) -> Iterator[float]:
    """Yield the seconds to wait before each further attempt."""
    seconds = first
    while True:
        yield seconds
        seconds = min(seconds * 2, MAX_BACKOFF_SECONDS)
