"""HTTP for likes."""

from hublet.accounts import service as accounts
from hublet.accounts.schemas import UserCard
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo
from hublet.repos.likes import service, store
from hublet.repos.likes.schemas import Like
from hublet.repos.records import Right
from hublet.tokens.auth import AccountOwner, MaybeCaller

router = Router()


@router.post(f"{GIT_REPO}/like", tags=GIT_TAGS, responses=MOVED)
async def like_repo(conn: Conn, caller: AccountOwner, address: GitRepo) -> Done:
    """Like a repository; doing it again changes nothing."""
    repo = await repos.get(conn, caller, address, Right.see)
    await service.like(conn, caller, repo)
    return Done()


@router.delete(f"{GIT_REPO}/like", tags=GIT_TAGS, responses=MOVED)
async def unlike_repo(conn: Conn, caller: AccountOwner, address: GitRepo) -> Done:
    """Take a like back; doing it again changes nothing."""
    repo = await repos.get(conn, caller, address, Right.see)
    await service.unlike(conn, caller, repo)
    return Done()


@router.get(f"{GIT_REPO}/likers", tags=GIT_TAGS, responses=LINKED | MOVED)
async def list_repo_likers(
    conn: ReadConn, caller: MaybeCaller, address: GitRepo, page: AskedPage
) -> list[UserCard]:
    """List who likes a repository, page by page."""
    repo = await repos.get(conn, caller, address, Right.see)
    found = await store.list_likers(conn, repo.id, after=page.after, limit=page.reach)
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(found, position=lambda u: u.id)]


@router.get("/api/users/{user}/likes", tags=["users"], responses=LINKED)
async def list_user_likes(
    conn: ReadConn, caller: MaybeCaller, user: str, page: AskedPage
) -> list[Like]:
    """List the public repositories that a user likes, the newest like first."""
    is_administrator = caller is not None and caller.is_admin
    found = await accounts.get_visible_user(conn, user, to_administrator=is_administrator)
    likes = await service.list_of_user(conn, found.id, after=page.after, limit=page.reach)
    return [Like.of(like) for like in page.cut(likes, position=service.write_position)]
