"""HTTP for users as everybody may see them, and for following them."""

from hublet.accounts import service, store
from hublet.accounts.avatars import avatar_url
from hublet.accounts.follows import service as follows
from hublet.accounts.follows import store as follows_store
from hublet.accounts.organizations import store as organizations
from hublet.accounts.records import User
from hublet.accounts.schemas import AvatarUrl, UserCard
from hublet.accounts.users.schemas import UserOverview
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, MaybeCaller

router = Router(prefix="/api/users", tags=["users"])


@router.get("/{name}/overview")
async def get_user_overview(conn: ReadConn, caller: MaybeCaller, name: str) -> UserOverview:
    """Show a user; with a token also whether its holder follows the user."""
    user = await _visible(conn, caller, name)
    return UserOverview.of_user(
        user,
        base_url=conn.hub.settings.base_url,
        memberships=await organizations.memberships_of(conn, user_id=user.id),
        counts=await store.count_public_repos(conn, user.id)
        | {"like": await store.count_public_likes(conn, user.id)},
        followers=await follows_store.count_followers(conn, account_id=user.id),
        following=await follows_store.count_followed_users(conn, follower_id=user.id),
        is_following=await follows.is_following(
            conn, viewer_id=caller.user_id if caller else None, account_id=user.id
        ),
    )


@router.get("/{name}/followers", responses=LINKED)
async def list_user_followers(
    conn: ReadConn, caller: MaybeCaller, name: str, page: AskedPage
) -> list[UserCard]:
    """List who follows a user, page by page."""
    user = await _visible(conn, caller, name)
    found = await follows_store.list_followers(
        conn, account_id=user.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(found, position=lambda u: u.id)]


@router.get("/{name}/following", responses=LINKED)
async def list_user_following(
    conn: ReadConn, caller: MaybeCaller, name: str, page: AskedPage
) -> list[UserCard]:
    """List the users whom a user follows, page by page."""
    user = await _visible(conn, caller, name)
    found = await follows_store.list_followed_users(
        conn, follower_id=user.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(found, position=lambda u: u.id)]


@router.get("/{name}/avatar")
async def get_user_avatar(conn: ReadConn, caller: MaybeCaller, name: str) -> AvatarUrl:
    """Tell where a user's picture is."""
    user = await _visible(conn, caller, name)
    return AvatarUrl(avatarUrl=avatar_url(conn.hub.settings.base_url, user.id))


@router.post("/{name}/follow")
async def follow_user(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Follow a user; doing it again changes nothing."""
    user = await _visible(conn, caller, name)
    await follows.follow(conn, follower_id=caller.user_id, account_id=user.id)
    return Done()


@router.delete("/{name}/follow")
async def unfollow_user(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Stop following a user; doing it again changes nothing."""
    user = await _visible(conn, caller, name)
    await follows.unfollow(conn, follower_id=caller.user_id, account_id=user.id)
    return Done()


async def _visible(conn: Reader, caller: MaybeCaller, name: str) -> User:
    is_administrator = caller is not None and caller.is_admin
    return await service.get_visible_user(conn, name, to_administrator=is_administrator)
