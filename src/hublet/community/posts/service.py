"""Rules of posts: who creates and who deletes them."""

from dataclasses import replace

from hublet.community.comments import PUBLIC_CONTEXT, is_hub_administrator, lock_thread
from hublet.community.errors import NotYourThread, ThreadNotFound
from hublet.community.threads import service as threads
from hublet.community.threads import store
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id, random_text
from hublet.tokens.records import Caller

_MAX_TITLE = 200


async def create(
    conn: Connection, caller: Caller, *, content: str, title: str | None = None
) -> Thread:
    moment = now()
    post = Thread(
        id=new_object_id(),
        kind=ThreadKind.post,
        title=title or _first_line(content),
        author_id=caller.user_id,
        owner_id=caller.user_id,
        slug=_new_slug(),
        body=content,
        created_at=moment,
        updated_at=moment,
    )
    while not await store.add(conn, post):
        post = replace(post, slug=_new_slug())
    await threads.open_thread(conn, post, PUBLIC_CONTEXT, actor_id=caller.user_id, message=None)
    return post


def _first_line(content: str) -> str:
    line = " ".join(content.strip().splitlines()[0].split())
    return line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1]}…"


def _new_slug() -> str:
    # Fifteen digits, as the public service has them; the first one is not zero.
    return random_text(1, "123456789") + random_text(14, "0123456789")


async def get(conn: Reader, *, user: str, slug: str) -> Thread:
    post = await store.find_by_slug(conn, ThreadKind.post, owner=user, slug=slug)
    if post is None:
        raise ThreadNotFound(f"post {user}/{slug}")
    return post


def owns(caller: Caller, post: Thread) -> bool:
    return post.author_id == caller.user_id


async def delete(conn: Connection, caller: Caller, post: Thread) -> None:
    """Delete one's own post with its comments; hub administrators delete any."""
    post = await lock_thread(conn, post)
    if not owns(caller, post) and not is_hub_administrator(caller):
        raise NotYourThread("delete", "post")
    await threads.delete(conn, post, PUBLIC_CONTEXT, actor_id=caller.user_id)
