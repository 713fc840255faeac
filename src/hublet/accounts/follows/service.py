"""Rules of following users and organizations."""

from hublet.accounts.errors import CannotFollowYourself
from hublet.accounts.follows import store
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import UserFollowed


async def follow(conn: Connection, *, follower_id: str, account_id: str) -> None:
    """Follow an account; doing it again changes nothing and tells nobody."""
    if follower_id == account_id:
        raise CannotFollowYourself
    if await store.add(conn, follower_id=follower_id, account_id=account_id):
        await publish(conn, UserFollowed(follower_id=follower_id, account_id=account_id))


async def unfollow(conn: Connection, *, follower_id: str, account_id: str) -> None:
    await store.remove(conn, follower_id=follower_id, account_id=account_id)


async def is_following(conn: Reader, *, viewer_id: str | None, account_id: str) -> bool | None:
    """Tell whether the viewer follows the account; None when nobody in particular asks."""
    if viewer_id is None:
        return None
    return await store.exists(conn, follower_id=viewer_id, account_id=account_id)
