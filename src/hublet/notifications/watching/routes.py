"""HTTP for what the caller watches and what the caller muted."""

from typing import Any

from hublet.core.http import Conn, ReadConn, Router
from hublet.notifications.watching import service, store
from hublet.notifications.watching.schemas import (
    MuteList,
    UpdateMuted,
    UpdateWatched,
    WatchList,
    targets_of,
)
from hublet.tokens.auth import InboxOwner, InboxReader

router = Router(prefix="/api/settings", tags=["notifications"])

_REFUSED: dict[int | str, dict[str, Any]] = {
    404: {"description": "Something to add does not exist, or the caller cannot see it."},
    409: {"description": "The list would be longer than it may be."},
}


@router.get("/watch")
async def get_watched(conn: ReadConn, caller: InboxReader) -> WatchList:
    """List the users, organizations and repositories that the caller watches.

    Members watch their organizations until they say otherwise. What the caller may not see any
    more is not listed.
    """
    return WatchList.of(await store.list_watched(conn, user_id=caller.user_id))


@router.patch("/watch", responses=_REFUSED)
async def update_watched(conn: Conn, caller: InboxOwner, body: UpdateWatched) -> WatchList:
    """Change what the caller watches; nothing is changed when one item is refused.

    First everything in `delete` goes, then everything in `add` comes. Deleting what is not watched
    is no mistake.
    """
    delete, add = targets_of(body.delete), targets_of(body.add)
    return WatchList.of(await service.watch(conn, user_id=caller.user_id, delete=delete, add=add))


@router.get("/mute")
async def get_muted(conn: ReadConn, caller: InboxReader) -> MuteList:
    """List the repositories and threads that the caller muted."""
    return MuteList.of(await store.list_muted(conn, user_id=caller.user_id))


@router.patch("/mute", responses=_REFUSED)
async def update_muted(conn: Conn, caller: InboxOwner, body: UpdateMuted) -> MuteList:
    """Mute repositories and threads, or hear of them again; all of it or nothing.

    A muted repository still tells of threads that the caller takes part in or is mentioned in, a
    muted thread tells nothing.
    """
    delete, add = targets_of(body.delete), targets_of(body.add)
    return MuteList.of(await service.mute(conn, user_id=caller.user_id, delete=delete, add=add))
