"""Routes of the inbox: list, mark as read, delete, stream."""

from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Query, Request
from pydantic import MISSING, ValidationError
from starlette.responses import Response

from hublet.core.database import Database
from hublet.core.errors import Conflict, InvalidRequest
from hublet.core.http import Db, FastRoute, Router
from hublet.core.http.conditional_requests import etag_of, has_version
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, EventStream, LastEventId
from hublet.core.http.exchange import exchange_of
from hublet.core.http.validation import describe_problems
from hublet.notifications.inbox import service
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.inbox.schemas import (
    ChangedNotifications,
    ChangeFilters,
    DeleteNotifications,
    Filters,
    MarkAsRead,
    Notifications,
)
from hublet.notifications.inbox.service import select, select_for_change
from hublet.notifications.inbox.stream import InboxWatcher, listen, read_update
from hublet.notifications.records import Selection
from hublet.tokens.auth import (
    InboxOwner,
    InboxReader,
    caller_of,
    check_inbox_reader,
    identify_inbox_reader,
)
from hublet.tokens.records import Caller

INBOX = "/api/notifications"

# A client without a stream polls after so long; a 304 costs little, but not nothing.
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
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"headers": _VERSION_HEADERS},
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION_HEADERS},
}

FiltersQuery = Annotated[Filters, Query()]
ChangeQuery = Annotated[ChangeFilters, Query()]


async def document_filters(_documented: FiltersQuery) -> None:
    """Document the filters of the fast route, which reads them with `parse_filters`."""


def parse_filters(request: Request) -> Filters:
    """Read the filters without the framework, refusing what it would refuse in its words."""
    try:
        return Filters.model_validate(dict(request.query_params))
    except ValidationError as error:
        problems = [{**each, "loc": ("query", *each["loc"])} for each in error.errors()]
        raise InvalidRequest(describe_problems(problems)) from None


router = Router(tags=["notifications"])


async def list_notifications(request: Request) -> Response:
    """List what is in the inbox, newest first, 25 items to a page.

    `count.view` is how many items match all filters, `count.all` how many do without
    `readStatus`, `count.unread` how many of those are unread. Names that nobody has, and
    filters that contradict each other, match nothing.
    """
    caller = await caller_of(request)
    check_inbox_reader(caller)
    filters = parse_filters(request)
    database: Database = request.app.state.database
    async with database.read() as conn:
        selection = await select(conn, caller.user_id, filters, except_owners=caller.blocked_owners)
    found = await read_page(database, caller.user_id, selection, page=filters.p)
    return _versioned(request, msgspec.json.encode(found))


router.add_api_route(
    INBOX,
    list_notifications,
    response_model=Notifications,
    responses=_RESPONSES,
    dependencies=[Depends(identify_inbox_reader), Depends(document_filters)],
    route_class_override=FastRoute,
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
    database: Db, caller: InboxOwner, filters: ChangeQuery, body: MarkAsRead | None = None
) -> ChangedNotifications:
    """Mark items as read, or as unread again: those of some threads, or all that match.

    The threads in `discussionIds`, or with `applyToAll=true` all; filters narrow both, `p` means
    nothing here. Without either nothing changes, and with `applyToAll` ids mean nothing.
    Nothing that came after the request is touched, and with `lastUpdate` nothing that came
    after that moment. Ids that are not in the inbox are ignored.
    """
    request = body or MarkAsRead()
    ids = [each.lower() for each in request.discussionIds]
    selection = await _select_until_now(database, caller, filters, ids)
    async with database.transaction() as conn:
        count = await service.mark(conn, caller.user_id, selection, read=request.read)
    return ChangedNotifications(count=count)


@router.delete(INBOX)
async def delete_notifications(
    database: Db,
    caller: InboxOwner,
    filters: ChangeQuery,
    body: DeleteNotifications | None = None,
) -> ChangedNotifications:
    """Delete items: those of some threads, or all that match. Something new brings them back.

    What is touched is told as for marking as read.
    """
    given = MISSING if body is None else body.discussionIds
    ids = [] if given is MISSING else [each.lower() for each in given]
    selection = await _select_until_now(database, caller, filters, ids)
    async with database.transaction() as conn:
        count = await service.delete(conn, caller.user_id, selection)
    return ChangedNotifications(count=count)


async def _select_until_now(
    database: Database, caller: Caller, filters: ChangeQuery, ids: list[str]
) -> Selection:
    async with database.read() as conn:
        selection = await select_for_change(
            conn, caller.user_id, filters, thread_ids=ids, except_owners=caller.blocked_owners
        )
        return await service.limit_to_now(conn, caller.user_id, selection)


async def recheck_access(request: Request, *, except_owners: frozenset[str] = frozenset()) -> None:
    """Refuse a token that was revoked since the request began, or whose reach has changed."""
    exchange_of(request).known_caller = None
    caller = await caller_of(request)
    if caller.blocked_owners != except_owners:
        raise Conflict("The organizations that this token reaches have changed: connect again.")


stream_router = Router(tags=["notifications"])


@stream_router.get(f"{INBOX}/stream", response_class=Response, responses=EVENT_STREAM_RESPONSES)
async def stream_notifications(
    request: Request, database: Db, caller: InboxReader, since: LastEventId = None
) -> Response:
    """Follow the caller's inbox as it changes.

    An event `count` says how many items are unread and how many there are, at the start and
    after each change. An event `notification` has an item as the list shows it, each time one
    comes or comes back. Who comes back with the `id` of the last event hears what came since.
    """
    watcher: InboxWatcher = request.app.state.inbox_watcher
    watcher.check_room(caller.user_id)
    moment = None if since is None else int(since)
    owners = caller.blocked_owners
    check = partial(recheck_access, request, except_owners=owners)
    read = partial(read_update, database, caller.user_id, Selection(except_owners=owners))
    return EventStream(
        request,
        partial(listen, read, watcher, caller.user_id, since=moment),
        check_access=check,
    )
