"""Reactions of the login: events that end all sessions of a user, and the link to a new password."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_in_transaction_to
from hublet.events import PasswordChanged, UserDisabled
from hublet.login import sessions, store


@reacts_in_transaction_to(PasswordChanged)
async def end_sessions(conn: Connection, event: PasswordChanged) -> None:
    """End all sessions: others may know the old password. The browser that set the new one renews its.

    A link that was asked for before is not needed any more.
    """
    await sessions.end_all(conn, user_id=event.user_id)
    await store.remove_password_reset(conn, event.user_id)


@reacts_in_transaction_to(UserDisabled)
async def end_sessions_of_disabled_user(conn: Connection, event: UserDisabled) -> None:
    """End sessions for good: they do not work anyway, and a user who is enabled again signs in."""
    await sessions.end_all(conn, user_id=event.user_id)
