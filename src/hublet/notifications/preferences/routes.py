"""HTTP for what the caller wants to hear of."""

from hublet.core.http import Conn, ReadConn, Router
from hublet.notifications.preferences import service
from hublet.notifications.preferences.schemas import (
    NotificationSettingsAnswer,
    UpdateNotificationSettings,
)
from hublet.tokens.auth import InboxOwner, InboxReader

router = Router(prefix="/api/settings/notifications", tags=["notifications"])


@router.get("")
async def get_notification_settings(
    conn: ReadConn, caller: InboxReader
) -> NotificationSettingsAnswer:
    """Show what the caller hears of, in the inbox and by mail: every switch, as it stands."""
    return NotificationSettingsAnswer.of(await service.get(conn, caller.user_id))


@router.patch("")
async def update_notification_settings(
    conn: Conn, caller: InboxOwner, body: UpdateNotificationSettings
) -> NotificationSettingsAnswer:
    """Change the switches that are named and keep the others.

    The request that switches `launch_prepaid_credits` on has to bring a `prepaidAmount`. While it
    is on, another amount replaces the first; when it goes off, the amount is forgotten.
    """
    return NotificationSettingsAnswer.of(await service.update(conn, caller.user_id, body))
