"""Parser of server-sent events."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    name: str
    data: str
    # Of this event or the last one that had one.
    id: str | None

    def read(self) -> Any:
        """Return the data as JSON."""
        return json.loads(self.data)


class EventReader:
    """Gathers lines into events, and remembers where to go on after a break."""

    def __init__(
        self, last_id: str | None = None, *, begun: Callable[[], None] | None = None
    ) -> None:
        """`begun` is called when a connection has said its first word."""
        self.last_id = last_id
        # How long the hub asks to wait before coming back.
        self.retry_seconds: float | None = None
        self.has_begun = False
        self._begun = begun
        self._is_new = True
        self._name = ""
        self._data: list[str] = []
        self._id = last_id

    def take(self, line: str) -> Event | None:
        """Take a line without its end; return the event that it completes."""
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
        """Forget an event that was cut in the middle: it comes again."""
        self._name, self._data, self._id = "", [], self.last_id
        self._is_new = True

    def _complete(self) -> Event | None:
        if self._is_new:
            self._is_new, self.has_begun = False, True
            if self._begun is not None:
                self._begun()
        name, data = self._name, self._data
        self._name, self._data = "", []
        # An id alone is no event, but the place to go on from.
        self.last_id = self._id
        if not data:
            return None
        return Event(name=name or "message", data="\n".join(data), id=self.last_id)
