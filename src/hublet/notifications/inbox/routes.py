"""HTTP for the inbox."""

from typing import Any

import msgspec
from fastapi import Depends, Request
from pydantic import MISSING
from starlette.responses import Response

from hublet.core.database import Database
from hublet.core.http import Db, HotRoute, Router
from hublet.core.http.versions import etag_of, has_version
from hublet.notifications.inbox import service
from hublet.notifications.inbox.auth import AskedChange, filters_of, show_filters
from hublet.notifications.inbox.filtering.service import selected, selected_for_change
from hublet.notifications.inbox.listing.service import read_page
from hublet.notifications.inbox.records import Selection
from hublet.notifications.inbox.schemas import (
    ChangedNotifications,
    DeleteNotifications,
    MarkAsRead,
    Notifications,
)
from hublet.tokens.auth import InboxOwner, caller_of, check_inbox_reader, identify_inbox_reader

INBOX = "/api/notifications"

# Who cannot keep a stream open looks again after so long; a 304 costs little, but not nothing.
POLL_SECONDS = 60

_VERSION_HEADERS = {
    "ETag": {
        "description": "The version; send it as `If-None-Match` with the next request.",
        "required": True,
        "schema": {"type": "string"},
    },
    "X-Poll-Interval": {
        "description": "How many seconds to wait before looking again.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"headers": _VERSION_HEADERS},
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION_HEADERS},
}

router = Router(tags=["notifications"])


async def list_notifications(request: Request) -> Response:
    """List what is in the inbox, newest first, 25 items to a page.

    `count.view` is how many items match all filters, `count.all` how many do without
    `readStatus`, `count.unread` how many of those are unread. Names that nobody has, and
    filters that contradict each other, match nothing.
    """
    caller = await caller_of(request)
    check_inbox_reader(caller)
    filters = filters_of(request)
    database: Database = request.app.state.database
    async with database.read() as conn:
        selection = await selected(conn, caller.user_id, filters)
    found = await read_page(database, caller.user_id, selection, page=filters.p)
    return _versioned(request, msgspec.json.encode(found))


router.add_api_route(
    INBOX,
    list_notifications,
    response_model=Notifications,
    responses=_ANSWERS,
    dependencies=[Depends(identify_inbox_reader), Depends(show_filters)],
    route_class_override=HotRoute,
)


def _versioned(request: Request, body: bytes) -> Response:
    headers = {
        "ETag": etag_of(body),
        "Cache-Control": "private, no-cache",
        "X-Poll-Interval": str(POLL_SECONDS),
    }
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.post(f"{INBOX}/mark-as-read")
async def mark_notifications_as_read(
    database: Db, caller: InboxOwner, filters: AskedChange, body: MarkAsRead | None = None
) -> ChangedNotifications:
    """Mark items as read, or as unread again: those of some threads, or all that match.

    Either `discussionIds` or `applyToAll=true`; filters narrow both, `p` means nothing here.
    Nothing that came after the request is touched, and with `lastUpdate` nothing that came
    after that moment. Ids that are not in the inbox are ignored.
    """
    asked = body or MarkAsRead()
    selection = await _bound(database, caller.user_id, filters, asked.discussionIds)
    async with database.transaction() as conn:
        count = await service.mark(conn, caller.user_id, selection, read=asked.read)
    return ChangedNotifications(count=count)


@router.delete(INBOX)
async def delete_notifications(
    database: Db,
    caller: InboxOwner,
    filters: AskedChange,
    body: DeleteNotifications | None = None,
) -> ChangedNotifications:
    """Delete items: those of some threads, or all that match. Something new brings them back.

    What is touched is told as for marking as read.
    """
    given = MISSING if body is None else body.discussionIds
    ids = [] if given is MISSING else [each.lower() for each in given]
    selection = await _bound(database, caller.user_id, filters, ids)
    async with database.transaction() as conn:
        count = await service.delete(conn, caller.user_id, selection)
    return ChangedNotifications(count=count)


async def _bound(
    database: Database, user_id: str, filters: AskedChange, ids: list[str]
) -> Selection:
    async with database.read() as conn:
        selection = await selected_for_change(conn, user_id, filters, thread_ids=ids)
        return await service.up_to_now(conn, user_id, selection)
