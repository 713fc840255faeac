"""Listening for as long as one likes: a stream that breaks is taken up again."""

from collections.abc import Callable, Iterator

from hublet.client.errors import NotReachable, Refused
from hublet.client.events import Event, EventReader
from hublet.client.hub import Hub, Query
from hublet.client.waiting import LONGEST_SECONDS, growing, pause

_FIRST_FAULT_OF_THE_HUB = 500
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
    reader, waits = EventReader(last_id, begun=begun), growing()
    while True:
        reason = "the hub ended the stream"
        try:
            for event in hub.events(path, query, reader=reader):
                waits = growing()
                yield event
        except NotReachable as error:
            if not reader.has_begun:
                raise
            reason = error.reason
        except Refused as error:
            if error.status < _FIRST_FAULT_OF_THE_HUB and error.status != _TOO_MANY:
                raise
            reason = error.sentence
        if lost is not None:
            lost(reason)
        pause(max(next(waits), min(reader.retry_seconds or 0, LONGEST_SECONDS)))
