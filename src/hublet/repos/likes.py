"""Likes of repositories, and the cursor of the list of them."""

import re

from hublet.core.clock import to_micros
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.core.paging import InvalidCursor
from hublet.events import RepoLiked
from hublet.repos import store
from hublet.repos.records import Repo, UserLike
from hublet.repos.service import snapshot
from hublet.tokens.records import Caller

_CURSOR = re.compile(r"(\d{1,18}):([0-9a-f]{24})")
# A position before which every like is, so that a list begins with the newest.
_START = (2**62, "")


async def like(conn: Connection, caller: Caller, repo: Repo) -> None:
    """Like a repository; doing it again changes nothing and publishes nothing."""
    if await store.add_like(conn, repo.id, user_id=caller.user_id):
        await publish(conn, RepoLiked(repo=snapshot(repo), user_id=caller.user_id))


async def unlike(conn: Connection, caller: Caller, repo: Repo) -> None:
    await store.remove_like(conn, repo.id, user_id=caller.user_id)


async def list_of_user(conn: Reader, user_id: str, *, after: str, limit: int) -> list[UserLike]:
    before = _read_position(after) if after else _START
    return await store.list_likes_of(conn, user_id, before=before, limit=limit)


def write_position(like: UserLike) -> str:
    return f"{to_micros(like.created_at)}:{like.repo.id}"


def _read_position(text: str) -> tuple[int, str]:
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return int(match[1]), match[2]
