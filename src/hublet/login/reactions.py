"""What ends sessions without a word from the browser."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_at_once_to
from hublet.events import PasswordChanged, UserDisabled
from hublet.login.sessions import service


@reacts_at_once_to(PasswordChanged)
async def end_sessions(conn: Connection, event: PasswordChanged) -> None:
    """Whoever knew the old password is out; the browser that set the new one begins anew."""
    await service.end_all(conn, user_id=event.user_id)


@reacts_at_once_to(UserDisabled)
async def end_sessions_of_disabled_user(conn: Connection, event: UserDisabled) -> None:
    """They are dead anyway; a user who is enabled again signs in again."""
    await service.end_all(conn, user_id=event.user_id)
