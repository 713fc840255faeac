"""Routes of preferences, watches, mutes, messages of the hub, and links in mails.

A link in a mail leads to a page with one button, because programs follow links, too.
"""

from typing import Any

from starlette.responses import Response

from hublet.core.errors import NotFound
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.pages import Templates, page_response
from hublet.notifications import watches, watches_store
from hublet.notifications.inbox.routes import router as inbox_router
from hublet.notifications.inbox.routes import stream_router
from hublet.notifications.inbox.schemas import Message
from hublet.notifications.mail import links
from hublet.notifications.messages import service as messages
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.schemas import (
    NotificationSettingsAnswer,
    UpdateNotificationSettings,
)
from hublet.notifications.preferences.switches import SWITCHES, PreferenceKey
from hublet.notifications.watch_schemas import (
    MuteList,
    UpdateMuted,
    UpdateWatched,
    WatchList,
    targets_of,
)
from hublet.tokens.auth import InboxOwner, InboxReader

messages_router = Router(prefix="/api/notifications/messages", tags=["notifications"])
preferences_router = Router(prefix="/api/settings/notifications", tags=["notifications"])
watches_router = Router(prefix="/api/settings", tags=["notifications"])
links_router = Router()
_REFUSED: dict[int | str, dict[str, Any]] = {
    404: {"description": "Something to add does not exist, or the caller cannot see it."},
    409: {"description": "The list would be longer than it may be."},
}
_templates = Templates("hublet.notifications.mail")
_PAGE = {"content": {"text/html": {"schema": {"type": "string"}}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "A page.", **_PAGE},
    404: {"description": "A page that says what is wrong with the link.", **_PAGE},
}


@messages_router.get("/{message_id}")
async def get_hub_message(conn: ReadConn, caller: InboxReader, message_id: str) -> Message:
    """Show in full what the hub told the caller; its `id` is that of the post in the inbox."""
    return Message.of(await messages.get(conn, message_id, user_id=caller.user_id))


@preferences_router.get("")
async def get_notification_settings(
    conn: ReadConn, caller: InboxReader
) -> NotificationSettingsAnswer:
    """Show what the caller hears of, in the inbox and by mail: every switch, as it stands."""
    return NotificationSettingsAnswer.of(await preferences.get(conn, caller.user_id))


@preferences_router.patch("")
async def update_notification_settings(
    conn: Conn, caller: InboxOwner, body: UpdateNotificationSettings
) -> NotificationSettingsAnswer:
    """Change the switches that are named and keep the others.

    The request that switches `launch_prepaid_credits` on has to bring a `prepaidAmount`. While it
    is on, another amount replaces the first; when it goes off, the amount is forgotten.
    """
    return NotificationSettingsAnswer.of(await preferences.update(conn, caller.user_id, body))


@watches_router.get("/watch")
async def get_watched(conn: ReadConn, caller: InboxReader) -> WatchList:
    """List the users, organizations and repositories that the caller watches.

    Members watch their organizations until they say otherwise. What the caller may not see any
    more is not listed.
    """
    return WatchList.of(await watches_store.list_watched(conn, user_id=caller.user_id))


@watches_router.patch("/watch", responses=_REFUSED)
async def update_watched(conn: Conn, caller: InboxOwner, body: UpdateWatched) -> WatchList:
    """Change what the caller watches; nothing is changed when one item is refused.

    First everything in `delete` goes, then everything in `add` comes. Deleting what is not watched
    is no mistake.
    """
    delete, add = targets_of(body.delete), targets_of(body.add)
    return WatchList.of(await watches.watch(conn, user_id=caller.user_id, delete=delete, add=add))


@watches_router.get("/mute")
async def get_muted(conn: ReadConn, caller: InboxReader) -> MuteList:
    """List the repositories and threads that the caller muted."""
    return MuteList.of(await watches_store.list_muted(conn, user_id=caller.user_id))


@watches_router.patch("/mute", responses=_REFUSED)
async def update_muted(conn: Conn, caller: InboxOwner, body: UpdateMuted) -> MuteList:
    """Mute repositories and threads, or hear of them again; all of it or nothing.

    A muted repository still tells of threads that the caller takes part in or is mentioned in, a
    muted thread tells nothing.
    """
    delete, add = targets_of(body.delete), targets_of(body.add)
    return MuteList.of(await watches.mute(conn, user_id=caller.user_id, delete=delete, add=add))


@links_router.get(
    "/unsubscribe/{token}", tags=["notifications"], response_class=Response, responses=_RESPONSES
)
async def ask_to_unsubscribe(database: Db, token: str) -> Response:
    """Ask whether mails of one kind are to stop; the link stands in each of them."""
    try:
        subscription = links.read_subscription(database.hub, token)
    except NotFound as error:
        return _error_page(error)
    sentence = f"These are mails about {_subject_of(subscription.key)}. All others still come."
    return _page("Stop these mails?", sentence, button="Stop them")


@links_router.post(
    "/unsubscribe/{token}", tags=["notifications"], response_class=Response, responses=_RESPONSES
)
async def unsubscribe(conn: Conn, token: str) -> Response:
    """Stop mails of one kind, without a login; mail programs call it with one click."""
    try:
        subscription = links.read_subscription(conn.hub, token)
    except NotFound as error:
        return _error_page(error)
    await preferences.turn_off(conn, subscription.user_id, subscription.key)
    sentence = f"No more mails come about {_subject_of(subscription.key)}. All others still do."
    return _page("They are stopped", sentence)


@links_router.get(
    "/verify-email/{token}", tags=["users"], response_class=Response, responses=_RESPONSES
)
async def ask_to_verify_email(database: Db, token: str) -> Response:
    """Ask whether an e-mail address belongs to the account; the link is sent to the address."""
    try:
        proof = links.read_proof(database.hub, token)
    except NotFound as error:
        return _error_page(error)
    sentence = f"{proof.address} was added to an account of this hub."
    return _page("Is this your address?", sentence, button="Yes, it is mine")


@links_router.post(
    "/verify-email/{token}", tags=["users"], response_class=Response, responses=_RESPONSES
)
async def verify_email(conn: Conn, token: str) -> Response:
    """Take an e-mail address as verified; doing it again changes nothing."""
    try:
        proof = links.read_proof(conn.hub, token)
        await links.verify_address(conn, proof)
    except NotFound as error:
        return _error_page(error)
    return _page("It is verified", f"Mails of this hub can come to {proof.address}.")


def _subject_of(key: PreferenceKey) -> str:
    return SWITCHES[key].about or str(key)


def _error_page(error: NotFound) -> Response:
    return _page("This link does not work", error.message, status=error.status)


def _page(title: str, sentence: str, *, button: str | None = None, status: int = 200) -> Response:
    body = _templates.render(
        "question.html", title=title, sentence=sentence, button=button, frame=None
    )
    return page_response(body, status=status)


# In the order in which they are looked up.
ROUTERS: tuple[Router, ...] = (
    inbox_router,
    messages_router,
    preferences_router,
    links_router,
    stream_router,
    watches_router,
)
