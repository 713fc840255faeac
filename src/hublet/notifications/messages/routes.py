"""HTTP for the hub's own messages."""

from hublet.core.http import ReadConn, Router
from hublet.notifications.messages import service
from hublet.notifications.messages.schemas import Message
from hublet.tokens.auth import InboxReader

router = Router(prefix="/api/notifications/messages", tags=["notifications"])


@router.get("/{message_id}")
async def get_hub_message(conn: ReadConn, caller: InboxReader, message_id: str) -> Message:
    """Show in full what the hub told the caller; its `id` is that of the post in the inbox."""
    return Message.of(await service.get(conn, message_id, user_id=caller.user_id))
