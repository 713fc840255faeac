"""HTTP for the inbox as it changes."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENTS, EventStream
from hublet.notifications.live.auth import LastEventId, check_again
from hublet.notifications.live.bells import Bells
from hublet.notifications.live.stream import listen
from hublet.tokens.auth import InboxReader

router = Router(tags=["notifications"])


@router.get("/api/notifications/stream", response_class=Response, responses=EVENTS)
async def stream_notifications(
    request: Request, database: Db, caller: InboxReader, since: LastEventId = None
) -> Response:
    """Follow the caller's inbox as it changes.

    An event `count` says how many items are unread and how many there are, at the start and
    after each change. An event `notification` has an item as the list shows it, each time one
    comes or comes back. Who comes back with the `id` of the last event hears what came since.
    """
    bells: Bells = request.app.state.inbox_bells
    bells.check_room(caller.user_id)
    moment = None if since is None else int(since)
    check = partial(check_again, request)
    return EventStream(
        request,
        partial(listen, database, bells, caller.user_id, since=moment),
        check_access=check,
    )
